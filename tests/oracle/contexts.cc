// Operations on contexts and streams.
#include "tests/oracle/operations.h"
#include "tests/oracle/program.h"

namespace oracle {
namespace {

template <class Member>
Member *unused(Numbered<Member> &all, const Words &words) {
  const int number = number_of(word(words, 0));
  return number >= 0 && number < kMost && all[number].life == Life::kNone ? &all[number] : nullptr;
}

void made(Context *context, CUcontext handle, int device, bool primary) {
  context->life = Life::kLive;
  context->handle = handle;
  context->device = device;
  context->primary = primary;
}

std::string retain(const Words &words) {
  Context *context = unused(objects().contexts, words);
  if (context == nullptr) return kSkipped;
  CUcontext handle = nullptr;
  const int device = number_of(word(words, 1));
  const CUresult code = cuDevicePrimaryCtxRetain(&handle, device);
  if (code == CUDA_SUCCESS) made(context, handle, device, true);
  return code_text(code);
}

std::string create(const Words &words) {
  Context *context = unused(objects().contexts, words);
  if (context == nullptr) return kSkipped;
  CUcontext handle = nullptr;
  const int device = number_of(word(words, 1));
  const CUresult code = cuCtxCreate_v2(&handle, 0, device);
  if (code == CUDA_SUCCESS) made(context, handle, device, false);
  return code_text(code);
}

// A handle that died may have returned under a later context.
bool is_taken(const Context &dead) {
  for (const Context &context : objects().contexts) {
    if (context.life == Life::kLive && context.handle == dead.handle) return true;
  }
  return false;
}

std::string use(const Words &words) {
  if (word(words, 0) == "none") return code_text(cuCtxSetCurrent(nullptr));
  const int number = number_of(word(words, 0));
  if (number < 0 || number >= kMost || objects().contexts[number].life == Life::kNone) return kSkipped;
  const Context &context = objects().contexts[number];
  if (context.life == Life::kDead && is_taken(context)) return kIncomparable;
  return code_text(cuCtxSetCurrent(context.handle));
}

std::string push(const Words &words) {
  const Context *context = live_context(words, 0);
  return context == nullptr ? kSkipped : code_text(cuCtxPushCurrent_v2(context->handle));
}

std::string pop(const Words &) {
  CUcontext popped = nullptr;
  return code_text(cuCtxPopCurrent_v2(&popped));
}

std::string destroy(const Words &words) {
  Context *context = live_context(words, 0);
  if (context == nullptr || context->primary) return kSkipped;
  const CUresult code = cuCtxDestroy_v2(context->handle);
  if (code == CUDA_SUCCESS) {
    end_with(number_of(word(words, 0)));
    context->life = Life::kDead;
  }
  return code_text(code);
}

void end_primary(CUcontext handle) {
  for (int i = 0; i < kMost; ++i) {
    if (objects().contexts[i].life == Life::kLive && objects().contexts[i].handle == handle) end_with(i);
  }
}

std::string reset(const Words &words) {
  const Context *context = live_context(words, 0);
  if (context == nullptr || !context->primary) return kSkipped;
  const CUresult code = cuDevicePrimaryCtxReset_v2(context->device);
  if (code == CUDA_SUCCESS) end_primary(context->handle);
  return code_text(code);
}

std::string release(const Words &words) {
  Context *context = live_context(words, 0);
  if (context == nullptr || !context->primary) return kSkipped;
  const CUresult code = cuDevicePrimaryCtxRelease_v2(context->device);
  unsigned flags = 0;
  int active = 1;
  cuDevicePrimaryCtxGetState(context->device, &flags, &active);
  if (active == 0) end_primary(context->handle);
  if (code == CUDA_SUCCESS) context->life = Life::kDead;
  return code_text(code);
}

std::string peer(const Words &words) {
  const Context *context = live_context(words, 0);
  return context == nullptr ? kSkipped : code_text(cuCtxEnablePeerAccess(context->handle, 0));
}

std::string synchronize(const Words &) {
  const int context = current_context();
  const CUresult code = cuCtxSynchronize();
  for (Block &block : objects().blocks) {
    if (code == CUDA_SUCCESS && block.life == Life::kLive && block.home == context) block.readable = true;
  }
  return code_text(code);
}

std::string stream(const Words &words) {
  Stream *made_stream = unused(objects().streams, words);
  if (made_stream == nullptr) return kSkipped;
  const unsigned flags = word(words, 1) == "nonblocking" ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
  const CUresult code = cuStreamCreate(&made_stream->handle, flags);
  if (code == CUDA_SUCCESS) {
    made_stream->life = Life::kLive;
    made_stream->context = current_context();
  }
  return code_text(code);
}

std::string end_stream(const Words &words) {
  const int number = number_of(word(words, 0));
  CUstream handle = nullptr;
  if (number < 0 || !stream_word(words, 0, handle)) return kSkipped;
  const CUresult code = cuStreamDestroy_v2(handle);
  if (code == CUDA_SUCCESS) objects().streams[number].life = Life::kDead;
  return code_text(code);
}

std::string synchronize_stream(const Words &words) {
  CUstream handle = nullptr;
  return stream_word(words, 0, handle) ? code_text(cuStreamSynchronize(handle)) : kSkipped;
}

}  // namespace

void add_contexts(Operations &all) {
  all.insert({{"retain", retain},
              {"create", create},
              {"use", use},
              {"push", push},
              {"pop", pop},
              {"destroy", destroy},
              {"reset", reset},
              {"release", release},
              {"peer", peer},
              {"sync", synchronize},
              {"stream", stream},
              {"end_stream", end_stream},
              {"sync_stream", synchronize_stream}});
}

}  // namespace oracle
