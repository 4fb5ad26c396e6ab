// Files that need no file system: memory (sparse) and null.
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "storage/member.hpp"
#include "storage/transfer.hpp"

namespace pario::storage {
namespace {

/// What only means something between processes is done at once.
class Private : public Member {
 public:
  Private(std::string name, layout::StripeLayout layout) : Member(std::move(name), layout) {}
  base::Status preallocate(std::uint64_t size) override {
    auto now = this->size();
    return now.ok() && *now < size ? resize(size) : now.status();
  }
  base::Status sync() override { return {}; }
  base::Status lock(base::Extent, bool) override { return {}; }
  base::Result<bool> try_lock(base::Extent, bool) override { return true; }
  base::Status unlock(base::Extent) override { return {}; }
  base::Status refresh() override { return {}; }
  base::Status close() override { return {}; }
};

class MemoryFile final : public Private {
 public:
  using Private::Private;
  base::Result<std::uint64_t> size() override {
    const std::shared_lock guard(mutex_);
    return size_;
  }
  base::Status resize(std::uint64_t size) override;

 private:
  static constexpr std::uint64_t kBlock = 64 << 10;
  using Block = std::unique_ptr<std::byte[]>;

  long attempt_read(std::uint64_t offset, std::span<const iovec> pieces) override;
  long attempt_write(std::uint64_t offset, std::span<const iovec> pieces) override;
  void copy_out(std::uint64_t offset, std::span<std::byte> data) const;
  void copy_in(std::uint64_t offset, std::span<const std::byte> data);

  std::shared_mutex mutex_;
  std::map<std::uint64_t, Block> blocks_;
  std::uint64_t size_ = 0;
};

/// Calls `use(block number, offset in the block, part)` for the parts of data in the blocks it lies in.
template <class Byte, class Use>
void for_blocks(std::uint64_t offset, std::span<Byte> data, std::uint64_t block, Use use) {
  while (!data.empty()) {
    const auto part = data.first(std::min<std::uint64_t>(data.size(), block - offset % block));
    use(offset / block, offset % block, part);
    offset += part.size();
    data = data.subspan(part.size());
  }
}

void MemoryFile::copy_out(std::uint64_t offset, std::span<std::byte> data) const {
  for_blocks(offset, data, kBlock, [this](std::uint64_t number, std::uint64_t at, std::span<std::byte> part) {
    const auto found = blocks_.find(number);
    if (found == blocks_.end())
      std::memset(part.data(), 0, part.size());
    else
      std::memcpy(part.data(), &found->second[at], part.size());
  });
}

void MemoryFile::copy_in(std::uint64_t offset, std::span<const std::byte> data) {
  for_blocks(offset, data, kBlock, [this](std::uint64_t number, std::uint64_t at, std::span<const std::byte> part) {
    Block& block = blocks_[number];
    if (!block) block = std::make_unique<std::byte[]>(kBlock);
    std::memcpy(&block[at], part.data(), part.size());
  });
}

long MemoryFile::attempt_read(std::uint64_t offset, std::span<const iovec> pieces) {
  const std::shared_lock guard(mutex_);
  if (offset >= size_) return 0;
  return for_pieces(pieces, size_ - offset, [&](std::span<std::byte> piece, std::uint64_t done) { copy_out(offset + done, piece); });
}

long MemoryFile::attempt_write(std::uint64_t offset, std::span<const iovec> pieces) {
  const std::unique_lock guard(mutex_);
  const long moved =
      for_pieces(pieces, total_length(pieces), [&](std::span<std::byte> piece, std::uint64_t done) { copy_in(offset + done, piece); });
  size_ = std::max(size_, offset + static_cast<std::uint64_t>(moved));
  return moved;
}

base::Status MemoryFile::resize(std::uint64_t size) {
  const std::unique_lock guard(mutex_);
  const std::uint64_t kept = base::round_up(size, kBlock);
  if (const auto last = blocks_.find(size / kBlock); size < kept && last != blocks_.end())
    std::memset(&last->second[size % kBlock], 0, kept - size);
  blocks_.erase(blocks_.lower_bound(kept / kBlock), blocks_.end());
  size_ = size;
  return {};
}

/// Has a size and no contents: reads zeros.
class NullFile final : public Private {
 public:
  using Private::Private;
  base::Result<std::uint64_t> size() override { return size_.load(); }
  base::Status resize(std::uint64_t size) override {
    size_ = size;
    return {};
  }

 private:
  long attempt_read(std::uint64_t offset, std::span<const iovec> pieces) override {
    const std::uint64_t size = size_.load();
    if (offset >= size) return 0;
    return for_pieces(pieces, size - offset, [](std::span<std::byte> piece, std::uint64_t) { std::memset(piece.data(), 0, piece.size()); });
  }
  long attempt_write(std::uint64_t offset, std::span<const iovec> pieces) override {
    const std::uint64_t length = total_length(pieces);
    std::uint64_t size = size_.load();
    while (size < offset + length && !size_.compare_exchange_weak(size, offset + length)) continue;
    return static_cast<long>(length);
  }

  std::atomic<std::uint64_t> size_ = 0;
};

}  // namespace

std::unique_ptr<File> make_memory(std::string name, layout::StripeLayout layout) {
  return std::make_unique<MemoryFile>(std::move(name), layout);
}

std::unique_ptr<File> make_null(std::string name) { return std::make_unique<NullFile>(std::move(name), layout::StripeLayout{}); }

}  // namespace pario::storage
