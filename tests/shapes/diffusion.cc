// Sampling images by diffusion: one network repeated on a fixed schedule, with skips on a stack, then a decoder with
// the largest activations of all. Each request has its own resolution and batch.
#include <array>
#include <deque>

#include "shapes/random.h"
#include "shapes/recorder.h"
#include "shapes/shapes.h"

namespace ration::shapes {
namespace {

using Id = Recorder::Id;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kRequests = 24;

struct Level {
  std::uint64_t channels;
  std::uint64_t transformers;  // in each block
};
constexpr std::array<Level, 3> kLevels{{{320, 0}, {640, 2}, {1280, 10}}};
constexpr std::uint64_t kBlocks = 2;  // of a level on the way down; one more on the way up
constexpr std::array<std::uint64_t, 4> kDecoderChannels{512, 512, 256, 128};

struct Resolution {
  std::uint64_t width, height;
};
constexpr std::array<Resolution, 7> kResolutions{
    {{1024, 1024}, {1152, 896}, {896, 1152}, {1216, 832}, {1344, 768}, {768, 1344}, {512, 512}}};

class Sampler {
 public:
  explicit Sampler(std::uint64_t seed) : random_(seed) {
    for (const Level &level : kLevels) {
      const std::uint64_t square = level.channels * level.channels * 2;
      for (std::uint64_t block = 0; block < 2 * kBlocks + 1; ++block) {
        weigh({9 * square, 9 * square, level.channels * 2, level.channels * 2});
        for (std::uint64_t i = 0; i < level.transformers; ++i) {
          weigh({square, square, square, square, square, 2048 * level.channels * 2, 2048 * level.channels * 2, square,
                 8 * square, 4 * square});
        }
      }
    }
    for (const std::uint64_t channels : kDecoderChannels) {
      for (int i = 0; i < 6; ++i) recorder_.allocate(9 * channels * channels * 4);
    }
    weigh({49'408 * 1280 * 2, 49'408 * 768 * 2});  // the text encoders' embeddings
    for (int layer = 0; layer < 32; ++layer) weigh({4 * 1280 * 1280 * 2, 8 * 1280 * 1280 * 2});
  }

  pool::replay::Trace run(std::uint64_t requests) {
    for (; requests > 0; --requests) {
      if (random_.one_in(3)) exchange_adapter();
      const Resolution &resolution = kResolutions[random_.between(0, kResolutions.size() - 1)];
      serve_request(resolution, random_.between(1, 4), random_.one_in(4));
    }
    return recorder_.take();
  }

 private:
  void weigh(std::initializer_list<std::uint64_t> sizes) {
    for (const std::uint64_t bytes : sizes) recorder_.allocate(bytes);
  }

  void serve_request(const Resolution &resolution, std::uint64_t images, bool is_fast) {
    pixels_ = resolution.width * resolution.height;
    cells_ = pixels_ / 64;
    // Guidance runs every image twice, with the text and without it. The fast models need no guidance and few steps.
    batch_ = is_fast ? images : 2 * images;
    const Id text = remember_prompt();
    std::vector<Id> layers;
    for (int layer = 0; layer < 4; ++layer) layers.push_back(recorder_.allocate(batch_ * 77 * 1280 * 4));
    recorder_.free(layers);
    const Id latent = recorder_.allocate(images * 4 * cells_ * 4);
    for (int step = is_fast ? 4 : 15; step > 0; --step) {
      const Id doubled = recorder_.allocate(batch_ * 4 * cells_ * 2);
      const Id noise = recorder_.allocate(batch_ * 4 * cells_ * 2);
      predict();
      recorder_.free(doubled);
      recorder_.pass(images * 4 * cells_ * 4);
      recorder_.free(noise);
    }
    recorder_.free(text);
    decode(images);
    recorder_.free(latent);
  }

  [[nodiscard]] std::uint64_t state_bytes(std::size_t level, std::uint64_t channels) const {
    return batch_ * (cells_ >> (2 * level)) * channels * 2;
  }

  void predict() {
    std::vector<Id> skips;
    Id state = recorder_.allocate(state_bytes(0, kLevels[0].channels));
    for (std::size_t level = 0; level < kLevels.size(); ++level) {
      for (std::uint64_t block = 0; block < kBlocks; ++block) {
        skips.push_back(state);
        state = block_of(level, state, kLevels[level].channels);
      }
      skips.push_back(state);
      if (level + 1 < kLevels.size()) state = recorder_.allocate(state_bytes(level + 1, kLevels[level].channels));
    }
    for (std::size_t level = kLevels.size(); level-- > 0;) {
      for (std::uint64_t block = 0; block < kBlocks + 1; ++block) {
        const Id skip = skips.back();
        skips.pop_back();
        const Id joined = recorder_.allocate(state_bytes(level, 2 * kLevels[level].channels));
        if (state != skip) recorder_.free(state);
        recorder_.free(skip);
        state = block_of(level, joined, 2 * kLevels[level].channels);
        recorder_.free(joined);
      }
      if (level > 0) {
        const Id larger = recorder_.allocate(state_bytes(level - 1, kLevels[level].channels));
        recorder_.free(state);
        state = larger;
      }
    }
    recorder_.free(state);
  }

  // A residual block and the transformers after it. The caller keeps `input`, which has that many channels.
  Id block_of(std::size_t level, Id input, std::uint64_t input_channels) {
    const std::uint64_t bytes = state_bytes(level, kLevels[level].channels);
    const Id normal = recorder_.allocate(state_bytes(level, input_channels));
    const Id workspace = recorder_.allocate((1 + recorder_.bytes(input) / (4 * kMiB)) * kMiB);
    Id convolved = recorder_.allocate(bytes);
    recorder_.free({workspace, normal});
    const Id second = recorder_.allocate(bytes);
    const Id output = recorder_.allocate(bytes);
    recorder_.free({convolved, second});
    Id state = output;
    for (std::uint64_t i = 0; i < kLevels[level].transformers; ++i) {
      const Id qkv = recorder_.allocate(3 * bytes);
      const Id attended = recorder_.allocate(bytes);
      recorder_.free(qkv);
      const Id gated = recorder_.allocate(8 * bytes);
      const Id inner = recorder_.allocate(4 * bytes);
      recorder_.free(gated);
      const Id next = recorder_.allocate(bytes);
      recorder_.free({inner, attended, state});
      state = next;
    }
    return state;
  }

  void decode(std::uint64_t images) {
    std::uint64_t area = cells_;
    Id state = recorder_.allocate(images * area * kDecoderChannels[0] * 4);
    for (std::size_t stage = 0; stage < kDecoderChannels.size(); ++stage) {
      const std::uint64_t bytes = images * area * kDecoderChannels[stage] * 4;
      for (int block = 0; block < 3; ++block) {
        const Id normal = recorder_.allocate(recorder_.bytes(state));
        const Id convolved = recorder_.allocate(bytes);
        recorder_.free(normal);
        const Id output = recorder_.allocate(bytes);
        recorder_.free({convolved, state});
        state = output;
      }
      if (stage + 1 == kDecoderChannels.size()) break;
      area *= 4;
      const Id larger = recorder_.allocate(images * area * kDecoderChannels[stage] * 4);
      recorder_.free(state);
      state = larger;
    }
    // Images live until they are fetched, some requests later.
    pictures_.push_back(recorder_.allocate(images * pixels_ * 3 * 4));
    recorder_.free(state);
    recorder_.pass(images * pixels_ * 3);
    while (pictures_.size() > 6) {
      const std::size_t which = random_.between(0, 2);
      recorder_.free(pictures_[which]);
      pictures_.erase(pictures_.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }

  // The embedding of a prompt stays for the next request with the same prompt. Each request has a copy.
  Id remember_prompt() {
    prompts_.push_back(recorder_.allocate(batch_ * 77 * 2048 * 2));
    if (prompts_.size() > 12) {
      recorder_.free(prompts_.front());
      prompts_.pop_front();
    }
    return recorder_.allocate(batch_ * 77 * 2048 * 2);
  }

  // Low-rank adapters for every matrix of the transformers; a few of them stay.
  void exchange_adapter() {
    const std::uint64_t rank = std::uint64_t{8} << random_.between(0, 4);
    std::vector<Id> adapter;
    for (const Level &level : kLevels) {
      for (std::uint64_t i = 0; i < 2 * level.transformers * (2 * kBlocks + 1); ++i) {
        adapter.push_back(recorder_.allocate(rank * level.channels * 2));
        adapter.push_back(recorder_.allocate(rank * level.channels * 2));
      }
    }
    adapters_.push_back(adapter);
    if (adapters_.size() <= 4) return;
    const std::size_t which = random_.between(0, adapters_.size() - 2);
    recorder_.free(adapters_[which]);
    adapters_.erase(adapters_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  Random random_;
  Recorder recorder_;
  std::deque<Id> prompts_;
  std::vector<Id> pictures_;
  std::vector<std::vector<Id>> adapters_;
  std::uint64_t pixels_ = 0;
  std::uint64_t cells_ = 0;  // of the latent image
  std::uint64_t batch_ = 0;
};

}  // namespace

pool::replay::Trace diffusion(std::uint64_t seed, double length) {
  return Sampler(seed).run(repeated(kRequests, length));
}

}  // namespace ration::shapes
