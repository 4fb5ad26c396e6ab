// Members without a file system: memory (sparse files) and null.
#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "core/file/attributes.hpp"
#include "core/file/member.hpp"
#include "core/file/members.hpp"
#include "core/file/transfer.hpp"

namespace pario::file {
namespace {

/// A file that no other process can open: operations between processes do nothing.
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

/// The bytes of a sparse file. Thread-safe.
class Blocks {
 public:
  std::uint64_t size() const {
    const std::shared_lock guard(mutex_);
    return size_;
  }
  void resize(std::uint64_t size);
  long read(std::uint64_t offset, std::span<const iovec> pieces) const;
  long write(std::uint64_t offset, std::span<const iovec> pieces);

 private:
  static constexpr std::uint64_t kBlock = 64 << 10;
  using Block = std::unique_ptr<std::byte[]>;

  void copy_out(std::uint64_t offset, std::span<std::byte> data) const;
  void copy_in(std::uint64_t offset, std::span<const std::byte> data);

  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, Block> blocks_;
  std::uint64_t size_ = 0;
};

/// Calls `use(block number, offset in the block, part)` for the part of data in each block.
template <class Byte, class Use>
void for_blocks(std::uint64_t offset, std::span<Byte> data, std::uint64_t block, Use use) {
  while (!data.empty()) {
    const auto part = data.first(std::min<std::uint64_t>(data.size(), block - offset % block));
    use(offset / block, offset % block, part);
    offset += part.size();
    data = data.subspan(part.size());
  }
}

void Blocks::copy_out(std::uint64_t offset, std::span<std::byte> data) const {
  for_blocks(offset, data, kBlock,
             [this](std::uint64_t number, std::uint64_t at, std::span<std::byte> part) {
               const auto found = blocks_.find(number);
               if (found == blocks_.end())
                 std::memset(part.data(), 0, part.size());
               else
                 std::memcpy(part.data(), &found->second[at], part.size());
             });
}

void Blocks::copy_in(std::uint64_t offset, std::span<const std::byte> data) {
  for_blocks(offset, data, kBlock,
             [this](std::uint64_t number, std::uint64_t at, std::span<const std::byte> part) {
               Block& block = blocks_[number];
               if (!block) block = std::make_unique<std::byte[]>(kBlock);
               std::memcpy(&block[at], part.data(), part.size());
             });
}

long Blocks::read(std::uint64_t offset, std::span<const iovec> pieces) const {
  const std::shared_lock guard(mutex_);
  if (offset >= size_) return 0;
  return for_pieces(pieces, size_ - offset, [&](std::span<std::byte> piece, std::uint64_t done) {
    copy_out(offset + done, piece);
  });
}

long Blocks::write(std::uint64_t offset, std::span<const iovec> pieces) {
  const std::unique_lock guard(mutex_);
  const long moved = for_pieces(
      pieces, total_length(pieces),
      [&](std::span<std::byte> piece, std::uint64_t done) { copy_in(offset + done, piece); });
  size_ = std::max(size_, offset + static_cast<std::uint64_t>(moved));
  return moved;
}

void Blocks::resize(std::uint64_t size) {
  const std::unique_lock guard(mutex_);
  const std::uint64_t kept = base::round_up(size, kBlock);
  if (const auto last = blocks_.find(size / kBlock); size < kept && last != blocks_.end())
    std::memset(&last->second[size % kBlock], 0, kept - size);
  blocks_.erase(blocks_.lower_bound(kept / kBlock), blocks_.end());
  size_ = size;
}

class MemoryFile final : public Private {
 public:
  MemoryFile(std::string name, layout::StripeLayout layout, std::shared_ptr<Blocks> blocks)
      : Private(std::move(name), layout), blocks_(std::move(blocks)) {}
  Capabilities capabilities() const override {
    return {.locks = true,
            .preallocation = true,
            .striping = can_set_stripes(layout().kind),  // as the file whose layout it imitates
            .resize = true,
            .content = true};
  }
  base::Result<std::uint64_t> size() override { return blocks_->size(); }
  base::Status resize(std::uint64_t size) override {
    blocks_->resize(size);
    return {};
  }

 private:
  long attempt_read(std::uint64_t offset, std::span<const iovec> pieces) override {
    return blocks_->read(offset, pieces);
  }
  long attempt_write(std::uint64_t offset, std::span<const iovec> pieces) override {
    return blocks_->write(offset, pieces);
  }

  std::shared_ptr<Blocks> blocks_;
};

/// The named files of this process.
struct NamedFiles {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Blocks>> blocks;
};

NamedFiles& named_files() {
  static NamedFiles* const all = new NamedFiles;  // used until the process ends
  return *all;
}

/// A file with a size and no contents: reads zeros.
class NullFile final : public Private {
 public:
  using Private::Private;
  Capabilities capabilities() const override {
    return {.locks = true, .preallocation = true, .resize = true};
  }
  base::Result<std::uint64_t> size() override { return size_.load(); }
  base::Status resize(std::uint64_t size) override {
    size_ = size;
    return {};
  }

 private:
  long attempt_read(std::uint64_t offset, std::span<const iovec> pieces) override {
    const std::uint64_t size = size_.load();
    if (offset >= size) return 0;
    return for_pieces(pieces, size - offset, [](std::span<std::byte> piece, std::uint64_t) {
      std::memset(piece.data(), 0, piece.size());
    });
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

base::Result<std::unique_ptr<File>> open_memory(const OpenRequest& request) {
  NamedFiles& all = named_files();
  const std::scoped_lock guard(all.mutex);
  const auto found = all.blocks.find(request.path);
  const bool exists = found != all.blocks.end();
  const bool creates = (request.flags & O_CREAT) != 0;
  if (exists ? creates && (request.flags & O_EXCL) != 0 : !creates)
    return base::Error{
        .number = exists ? EEXIST : ENOENT, .operation = "open", .path = "memory:" + request.path};
  const auto blocks = exists ? found->second : std::make_shared<Blocks>();
  if (!exists) all.blocks[request.path] = blocks;
  if ((request.flags & O_TRUNC) != 0) blocks->resize(0);
  return std::unique_ptr<File>(
      std::make_unique<MemoryFile>("memory:" + request.path, layout::StripeLayout{}, blocks));
}

base::Status remove_memory(const std::string& name) {
  NamedFiles& all = named_files();
  const std::scoped_lock guard(all.mutex);
  if (all.blocks.erase(name) == 1) return {};
  return base::Error{.number = ENOENT, .operation = "unlink", .path = "memory:" + name};
}

std::unique_ptr<File> make_memory(std::string name, layout::StripeLayout layout) {
  return std::make_unique<MemoryFile>(std::move(name), layout, std::make_shared<Blocks>());
}

std::unique_ptr<File> make_null(std::string name) {
  return std::make_unique<NullFile>(std::move(name), layout::StripeLayout{});
}

}  // namespace pario::file
