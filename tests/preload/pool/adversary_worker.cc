#include "adversary_worker.h"

#include <algorithm>
#include <thread>

namespace preload::pool {
namespace {

constexpr unsigned kSmallestBits = 9, kSizeBits = 12;  // 512 bytes to 1 MiB
constexpr std::size_t kReadScratchBytes = kScratchBytes / Worker::kReads;

bool allocate_pinned(void **bytes, std::size_t count, Verdict &verdict) {
  return verdict.succeeded("cuMemHostAlloc", cuMemHostAlloc(bytes, count, CU_MEMHOSTALLOC_PORTABLE));
}

}  // namespace

bool Arena::prepare() {
  if (!verdict.succeeded("cuCtxSetCurrent", cuCtxSetCurrent(sites[0].context)) ||
      !allocate_pinned(&late_host, kMostBytes, verdict)) {
    return false;
  }
  std::fill_n(static_cast<unsigned char *>(late_host), kMostBytes, kLateFromHost);
  return true;
}

void Arena::hand_over(CUdeviceptr address) {
  const std::lock_guard guard(mutex_);
  mailbox_.push_back(address);
}

std::optional<CUdeviceptr> Arena::handed_over() {
  const std::lock_guard guard(mutex_);
  if (mailbox_.empty()) return std::nullopt;
  const CUdeviceptr address = mailbox_.back();
  mailbox_.pop_back();
  return address;
}

bool Worker::go_to(std::size_t site) {
  return arena_.verdict.succeeded("cuCtxSetCurrent", cuCtxSetCurrent(arena_.sites[site].context));
}

StreamKind Worker::choose_stream(std::size_t site) {
  const StreamKind kind = kStreamKinds[below(kStreamKinds.size())];
  return kind == StreamKind::kPerThread && !arena_.sites[site].per_thread_stream ? StreamKind::kBlocking : kind;
}

bool Worker::set_up() {
  Verdict &verdict = arena_.verdict;
  desks_.resize(arena_.sites.size());
  for (std::size_t i = 0; i < desks_.size(); ++i) {
    if (!make_desk(arena_.sites[i], &desks_[i], verdict)) return false;
  }
  const auto pinned = [&](auto &place) { return allocate_pinned(&place.pinned, kMostBytes, verdict); };
  return std::all_of(held_.begin(), held_.end(), pinned) && std::all_of(reads_.begin(), reads_.end(), pinned);
}

void Worker::run() {
  const bool ready = set_up();
  arena_.all_set_up.arrive_and_wait();
  if (!ready) return;
  while (!arena_.verdict.failed()) {
    Held &place = held_[below(kHeld)];
    if (place.address != 0) {
      give_back(&place);
    } else if (arena_.rounds_left.fetch_sub(1) <= 0) {
      break;
    } else {
      while (!arena_.verdict.failed() && !take(&place)) {
      }
    }
    if (one_in(4)) free_handed_over();
  }
  for (Held &place : held_) {
    if (place.address != 0 && !arena_.verdict.failed()) give_back(&place);
  }
  for (Read &read : reads_) {
    if (!arena_.verdict.failed()) check(&read);
  }
  free_handed_over();
}

// False: there was no room; some block was freed for the next try.
bool Worker::take(Held *place) {
  Held block = *place;
  block.site = below(arena_.sites.size());
  const std::size_t most = std::size_t{1} << (kSmallestBits + below(kSizeBits));
  block.bytes = static_cast<std::uint32_t>(most == kMostBytes ? most : most + below(most / 8) * 8);
  block.word = number_ << 24 | ++sequence_;
  if (!go_to(block.site)) return false;
  const CUresult code = cuMemAlloc_v2(&block.address, block.bytes);
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    ++arena_.counts.refused;
    const auto other = std::find_if(held_.begin(), held_.end(), [](const Held &held) { return held.address != 0; });
    if (other != held_.end()) give_back(&*other);
    free_handed_over();
    std::this_thread::yield();
    return false;
  }
  if (!arena_.verdict.succeeded("cuMemAlloc", code)) return false;
  if (!arena_.handed_out.take(block.address, block.bytes)) {
    dprintf(1, "two owners: %#llx\n", static_cast<unsigned long long>(block.address));
    arena_.verdict.fail(kWrongBytes);
    return false;
  }
  block.stream = desks_[block.site].stream(choose_stream(block.site));
  *place = block;
  ++arena_.counts.rounds;
  return write(block);
}

bool Worker::write(const Held &block) {
  std::size_t kind = 0;
  do {
    kind = below(kinds().size());
  } while (!kinds()[kind].any_word);
  std::fill_n(static_cast<std::uint32_t *>(block.pinned), block.bytes / 4, block.word);
  const Site *site = &arena_.sites[block.site];
  const Act act{.at = site,
                .owner = site,
                .stream = block.stream,
                .address = block.address,
                .bytes = block.bytes,
                .word = block.word,
                .host_source = block.pinned,
                .capturing = desks_[block.site].capturing};
  return arena_.verdict.succeeded(kinds()[kind].name, kinds()[kind].submit(act));
}

bool Worker::same(const void *bytes, std::uint32_t count, std::uint32_t word, const char *where) {
  const auto *first = static_cast<const std::uint32_t *>(bytes);
  const auto *wrong = std::find_if(first, first + count / 4, [word](std::uint32_t found) { return found != word; });
  if (wrong == first + count / 4) return true;
  dprintf(1, "wrong bytes in %s of %u bytes, at %zu: %#x, not %#x: %s\n", where, count,
          static_cast<std::size_t>(wrong - first) * 4, *wrong, word, late_writer(*wrong));
  arena_.verdict.fail(kWrongBytes);
  return false;
}

bool Worker::holds_only(const Held &block) {
  Verdict &verdict = arena_.verdict;
  return verdict.succeeded("copy to the host", fetch(block.pinned, block.address, block.bytes, block.stream)) &&
         verdict.succeeded("cuStreamSynchronize", cuStreamSynchronize(block.stream)) &&
         same(block.pinned, block.bytes, block.word, "a block");
}

bool Worker::check(Read *read) {
  if (read->bytes == 0) return true;
  const std::uint32_t bytes = read->bytes;
  read->bytes = 0;
  return go_to(read->site) && arena_.verdict.succeeded("cuStreamSynchronize", cuStreamSynchronize(read->stream)) &&
         same(read->pinned, bytes, read->word, "what was read from a block before its free");
}

const Kind &Worker::choose_kind(const Held &block, bool elsewhere, std::optional<bool> reads) {
  for (;;) {
    const Kind &kind = kinds()[below(kinds().size())];
    if (kind.between_sites == elsewhere && (!kind.by_scratch || block.bytes <= kReadScratchBytes) &&
        (!reads || *reads == kind.reads)) {
      return kind;
    }
  }
}

std::optional<Worker::Left> Worker::leave_behind(const Held &block, std::optional<bool> reads) {
  Verdict &verdict = arena_.verdict;
  // Other contexts read small blocks only.
  const bool too_large = reads.value_or(false) && block.bytes > kReadScratchBytes;
  const bool elsewhere = arena_.across && desks_.size() > 1 && !too_large && one_in(3);
  const std::size_t site = elsewhere ? (block.site + 1 + below(desks_.size() - 1)) % desks_.size() : block.site;
  const Kind &kind = choose_kind(block, elsewhere, reads);
  const StreamKind stream_kind = choose_stream(site);
  const std::size_t slot = below(kReads);
  Read &read = reads_[slot];
  if ((kind.reads && !check(&read)) || !go_to(site)) return std::nullopt;
  const Desk &desk = desks_[site];
  const Left left{site, desk.stream(stream_kind), kind.reads};
  for (std::size_t fillers = below(4); fillers > 0; --fillers) {
    if (!verdict.succeeded("memset before late work", submit_filler(left.stream, desk.scratch))) return std::nullopt;
  }
  const Act act{.at = &arena_.sites[site],
                .owner = &arena_.sites[block.site],
                .stream = left.stream,
                .address = block.address,
                .bytes = block.bytes,
                .word = late_word(kind.late_byte),
                .host_source = arena_.late_host,
                .host_target = read.pinned,
                .capturing = desk.capturing,
                .scratch = desk.scratch + slot * kReadScratchBytes};
  if (!verdict.succeeded(kind.name, kind.submit(act))) return std::nullopt;
  if (kind.reads) {
    read = {site, left.stream, block.bytes, block.word, read.pinned};
    ++arena_.counts.late_reads;
  }
  ++arena_.counts.left_behind;
  if (in_flight(left.stream)) {
    ++arena_.counts.in_flight;
    ++arena_.counts.late[static_cast<std::size_t>(&kind - kinds().data())][static_cast<std::size_t>(stream_kind)];
  }
  return left;
}

void Worker::free_block(const Held &block, const Left &left, bool only_one) {
  Verdict &verdict = arena_.verdict;
  if (arena_.async && only_one && left.site == block.site && one_in(3)) {
    arena_.handed_out.give(block.address);
    verdict.succeeded("cuMemFreeAsync", free_in_order(block.address, left.stream));
  } else if (one_in(6)) {
    arena_.hand_over(block.address);
  } else {
    if (one_in(4) && !go_to(below(desks_.size()))) return;
    arena_.handed_out.give(block.address);
    verdict.succeeded("cuMemFree", cuMemFree_v2(block.address));
  }
}

void Worker::free_handed_over() {
  if (const auto address = arena_.handed_over()) {
    arena_.handed_out.give(*address);
    arena_.verdict.succeeded("cuMemFree of another thread's block", cuMemFree_v2(*address));
  }
}

void Worker::give_back(Held *place) {
  const Held block = *place;
  place->address = 0;
  if (!go_to(block.site) || !holds_only(block)) return;
  auto left = leave_behind(block, std::nullopt);
  // Two of the same kind: what a late reader finds must not depend on their order.
  const bool two = left && one_in(4);
  if (two) left = leave_behind(block, left->reads);
  if (left) free_block(block, *left, !two);
}

}  // namespace preload::pool
