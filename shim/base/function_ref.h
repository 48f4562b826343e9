// A reference to a callable that the caller keeps alive: two words, no allocation, unlike std::function.
// Layer: base. Threads: as the callable. REQUIRES: the callable outlives every call.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace ration {

template <class Signature>
class FunctionRef;

template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class Callable, class = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef> &&
                                                     std::is_invocable_r_v<Result, Callable &, Arguments...>>>
  FunctionRef(Callable &&callable) noexcept {  // implicit, so that a lambda can be passed directly
    using Target = std::remove_reference_t<Callable>;
    if constexpr (std::is_function_v<Target>) {
      target_.function = reinterpret_cast<void (*)()>(&callable);
      call_ = [](Pointer target, Arguments... arguments) -> Result {
        return reinterpret_cast<Target *>(target.function)(std::forward<Arguments>(arguments)...);
      };
    } else {
      target_.object = const_cast<void *>(static_cast<const volatile void *>(std::addressof(callable)));
      call_ = [](Pointer target, Arguments... arguments) -> Result {
        return (*static_cast<Target *>(target.object))(std::forward<Arguments>(arguments)...);
      };
    }
  }

  Result operator()(Arguments... arguments) const { return call_(target_, std::forward<Arguments>(arguments)...); }

 private:
  union Pointer {
    void *object;
    void (*function)();
  };
  Pointer target_;
  Result (*call_)(Pointer, Arguments...);
};

}  // namespace ration
