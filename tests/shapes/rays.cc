// Ray tracing: acceleration structures that are built with scratch of several times their size and then compacted,
// textures with mip chains that stream in and out, frame buffers that change with the resolution.
#include <array>
#include <deque>

#include "shapes/random.h"
#include "shapes/recorder.h"
#include "shapes/shapes.h"

namespace ration::shapes {
namespace {

using Id = Recorder::Id;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kFrames = 4'000;
constexpr std::uint64_t kTextureBudget = 4096 * kMiB;
constexpr std::size_t kMeshes = 600;

struct Mesh {
  Id vertices, indices, structure;
};

struct Texture {
  std::vector<Id> levels;
  std::uint64_t bytes;
};

class Renderer {
 public:
  explicit Renderer(std::uint64_t seed) : random_(seed) {
    while (meshes_.size() < kMeshes) meshes_.push_back(load_mesh());
    resize();
  }

  pool::replay::Trace run(std::uint64_t frames) {
    for (; frames > 0; --frames) {
      if (random_.one_in(150)) resize();
      if (random_.one_in(4)) exchange_mesh();
      for (std::uint64_t textures = random_.between(0, 3); textures > 0; --textures) stream_texture();
      frame();
    }
    return recorder_.take();
  }

 private:
  Mesh load_mesh() {
    const std::uint64_t triangles = random_.log_uniform(1 << 8, 13);
    Mesh mesh{};
    mesh.vertices = recorder_.allocate(triangles / 2 * 32 + 256);
    mesh.indices = recorder_.allocate(triangles * 12);
    const Id loose = recorder_.allocate(triangles * 96 + 4096);
    const Id scratch = recorder_.allocate(triangles * random_.between(60, 240) + 4096);
    const Id compacted_size = recorder_.allocate(8);
    recorder_.free(scratch);
    // Compaction leaves 40 to 65 per cent.
    mesh.structure = recorder_.allocate((triangles * 96 + 4096) * random_.between(40, 65) / 100);
    recorder_.free({compacted_size, loose});
    return mesh;
  }

  void exchange_mesh() {
    Mesh &mesh = meshes_[random_.between(0, meshes_.size() - 1)];
    const Mesh old = mesh;
    // Half of them are built before the old scene is freed, as while one scene fades into another.
    const bool overlap = random_.one_in(2);
    if (!overlap) recorder_.free({old.vertices, old.indices, old.structure});
    mesh = load_mesh();
    if (overlap) recorder_.free({old.vertices, old.indices, old.structure});
  }

  void stream_texture() {
    const std::uint64_t side = std::uint64_t{256} << random_.between(0, 4);
    const std::uint64_t bytes_of_four = random_.one_in(4) ? 16 : 4;  // texels, plain or compressed
    // Fine levels are allocated one by one as they become visible, the coarse ones as one block.
    Texture texture{};
    for (std::uint64_t at = side; at >= side / 4; at /= 2) {
      texture.levels.push_back(recorder_.allocate(at * at * bytes_of_four / 4));
    }
    texture.levels.push_back(recorder_.allocate(side * side / 48 * bytes_of_four / 4));
    for (const Id level : texture.levels) texture.bytes += recorder_.bytes(level);
    texture_bytes_ += texture.bytes;
    textures_.push_back(texture);
    while (texture_bytes_ > kTextureBudget) {
      // Usually evicts the oldest; some are in use again and stay.
      const std::size_t which = random_.between(0, textures_.size() / 8);
      texture_bytes_ -= textures_[which].bytes;
      recorder_.free(textures_[which].levels);
      textures_.erase(textures_.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }

  void resize() {
    static constexpr std::array<std::uint64_t, 4> kPixels{1280 * 720, 1920 * 1080, 2560 * 1440, 3840 * 2160};
    recorder_.free(targets_);
    pixels_ = kPixels[random_.between(0, kPixels.size() - 1)];
    targets_.clear();
    for (const std::uint64_t bytes : {16U, 16U, 8U, 8U, 4U, 4U, 16U})
      targets_.push_back(recorder_.allocate(pixels_ * bytes));
  }

  void frame() {
    const std::uint64_t instances = random_.between(2'000, 20'000);
    const Id transforms = recorder_.allocate(instances * 64);
    const Id scratch = recorder_.allocate(instances * 200 + 65'536);
    const Id top = recorder_.allocate(instances * 128 + 4096);
    recorder_.free(scratch);
    std::uint64_t rays = pixels_;
    Id queue = recorder_.allocate(rays * 32);
    for (std::uint64_t bounces = random_.between(1, 5); bounces > 0; --bounces) {
      const Id hits = recorder_.allocate(rays * 16);
      rays = rays * random_.between(40, 95) / 100 + 1;
      const Id next = recorder_.allocate(rays * 32);
      recorder_.pass(rays / 64 + 4096);
      recorder_.free({hits, queue});
      queue = next;
    }
    recorder_.free(queue);
    const Id denoised = recorder_.allocate(pixels_ * 16);
    recorder_.pass(pixels_ * 24);
    recorder_.free({denoised, top, transforms});
  }

  Random random_;
  Recorder recorder_;
  std::vector<Mesh> meshes_;
  std::deque<Texture> textures_;
  std::uint64_t texture_bytes_ = 0;
  std::vector<Id> targets_;
  std::uint64_t pixels_ = 0;
};

}  // namespace

pool::replay::Trace rays(std::uint64_t seed, double length) {
  return Renderer(seed).run(repeated(kFrames, length));
}

}  // namespace ration::shapes
