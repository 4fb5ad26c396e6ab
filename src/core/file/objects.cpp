#include "core/file/objects.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "core/file/block_cache.hpp"
#include "core/file/memory_blocks.hpp"
#include "core/file/transfer.hpp"

namespace pario::file {
namespace {

/// Bytes that sequential reads of at most kShort bytes read ahead.
constexpr std::uint64_t kBlock = 8 << 20, kShort = 256 << 10;

using Facts = std::shared_ptr<const ObjectFacts>;
using FoundFacts = base::Result<Facts>;

struct State {
  std::mutex mutex;
  std::shared_ptr<ObjectStore> store;
  int keepers = 0;  ///< of type KeptObjects
  std::map<std::string, FoundFacts> kept;
};

State& process_state() {
  static State* const the = new State;  // used until the process ends
  return *the;
}

base::Result<std::shared_ptr<ObjectStore>> store_for(const std::string& url) {
  const std::scoped_lock guard(process_state().mutex);
  if (process_state().store) return process_state().store;
  return base::Error{.number = ENOSYS,
                     .operation = "open",
                     .path = url,
                     .detail = "objects of stores are read by the Python package"};
}

std::optional<FoundFacts> find_kept(const std::string& url) {
  const std::scoped_lock guard(process_state().mutex);
  const auto found = process_state().kept.find(url);
  return found == process_state().kept.end() ? std::nullopt : std::optional(found->second);
}

void keep(const std::string& url, const FoundFacts& facts) {
  const std::scoped_lock guard(process_state().mutex);
  if (process_state().keepers > 0) process_state().kept.insert_or_assign(url, facts);
}

bool keeps_objects() {
  const std::scoped_lock guard(process_state().mutex);
  return process_state().keepers > 0;
}

void forget(const std::string& url) {
  const std::scoped_lock guard(process_state().mutex);
  process_state().kept.erase(url);
}

FoundFacts find_facts(ObjectStore& store, const std::string& url) {
  if (const std::optional<FoundFacts> kept = find_kept(url)) return *kept;
  base::Result<ObjectFacts> opened = store.open(url, kObjectTail);
  const FoundFacts facts = opened.ok()
                               ? FoundFacts(std::make_shared<const ObjectFacts>(std::move(*opened)))
                               : FoundFacts(opened.error());
  if (facts.ok() || facts.error().number == ENOENT) keep(url, facts);
  return facts;
}

class StoredObject : public ObjectFile {
 public:
  StoredObject(std::string url, std::shared_ptr<ObjectStore> store, Facts facts,
               std::shared_ptr<BlockCache> cache)
      : url_(std::move(url)),
        store_(std::move(store)),
        facts_(std::move(facts)),
        cache_(std::move(cache)) {}

  const ObjectFacts& facts() const override { return *facts_; }
  const std::string& path() const override { return url_; }
  Capabilities capabilities() const override { return {.content = true}; }
  base::Result<std::uint64_t> read(std::uint64_t offset, std::span<std::byte> data) override {
    const std::uint64_t begin = std::min(offset, facts_->size),
                        length = std::min<std::uint64_t>(data.size(), facts_->size - begin),
                        tail = facts_->size - facts_->tail.size();
    const std::span<std::byte> out = data.first(length);
    if (out.empty()) return length;
    if (begin >= tail) {
      std::memcpy(out.data(), facts_->tail.data() + (begin - tail), length);
      return length;
    }
    if (begin + length <= facts_->head.size()) {
      std::memcpy(out.data(), facts_->head.data() + begin, length);
      return length;
    }
    const bool ahead = sequential_ && length <= kShort;
    const base::Status status = ahead ? read_from_block(begin, out) : fetch(begin, out);
    return status ? base::Result<std::uint64_t>(length) : status.error();
  }
  void expect_sequential() override { sequential_ = true; }
  void keep_blocks() override {
    const std::scoped_lock guard(mutex_);
    if (cache_ || memory_) return;
    memory_ = std::make_unique<MemoryBlocks>(facts_->size);
    keeps_ = true;
  }
  base::Result<std::uint64_t> read_vector(std::uint64_t offset, std::span<iovec> pieces) override {
    std::uint64_t done = 0;
    for (const iovec& piece : pieces) {
      const base::Result<std::uint64_t> got =
          read(offset + done, {static_cast<std::byte*>(piece.iov_base), piece.iov_len});
      if (!got.ok()) return got;
      done += *got;
      if (*got < piece.iov_len) break;
    }
    return done;
  }
  base::Status write(std::uint64_t, std::span<const std::byte>) override { return refuse("write"); }
  base::Status write_vector(std::uint64_t, std::span<iovec>) override { return refuse("write"); }
  base::Result<std::uint64_t> size() override { return facts_->size; }
  base::Status resize(std::uint64_t) override { return refuse("resize"); }
  base::Status preallocate(std::uint64_t) override { return refuse("preallocate"); }
  base::Status sync() override { return {}; }
  base::Status lock(base::Extent, bool) override { return refuse("lock"); }
  base::Result<bool> try_lock(base::Extent, bool) override { return refuse("lock").error(); }
  base::Status unlock(base::Extent) override { return refuse("unlock"); }
  base::Status refresh() override { return {}; }
  const layout::StripeLayout& layout() const override { return layout_; }
  base::Status close() override { return {}; }

 private:
  base::Status refuse(const char* operation) const {
    return base::Error{.number = EOPNOTSUPP,
                       .operation = operation,
                       .path = url_,
                       .detail = "an object of a store is written as a whole"};
  }

  base::Status fetch(std::uint64_t begin, std::span<std::byte> out) {
    const auto request = [this](std::uint64_t offset, std::span<std::byte> bytes) {
      return store_->read(url_, *facts_, offset, bytes);
    };
    if (keeps_) return memory_->read(begin, out, request);
    return cache_ ? cache_->read(url_, *facts_, begin, out, request) : request(begin, out);
  }
  base::Status read_from_block(std::uint64_t begin, std::span<std::byte> out) {
    const std::scoped_lock guard(mutex_);
    if (begin < block_begin_ || begin + out.size() > block_begin_ + block_.size()) {
      block_begin_ = begin;
      block_.resize(std::min(kBlock, facts_->size - begin));
      base::Status status = fetch(begin, block_);
      if (!status) block_.clear();
      if (!status) return status;
    }
    std::memcpy(out.data(), block_.data() + (begin - block_begin_), out.size());
    return {};
  }

  std::string url_;
  std::shared_ptr<ObjectStore> store_;
  Facts facts_;
  std::atomic<bool> sequential_ = false;
  std::mutex mutex_;
  std::vector<std::byte> block_;
  std::uint64_t block_begin_ = 0;
  std::shared_ptr<BlockCache> cache_;     ///< null: blocks are not kept on the node
  std::unique_ptr<MemoryBlocks> memory_;  ///< set before keeps_ is
  std::atomic<bool> keeps_ = false;
  layout::StripeLayout layout_ = {};
};

}  // namespace

bool is_url(std::string_view name) {
  const std::size_t colon = name.find("://");
  if (colon == name.npos || colon == 0) return false;
  const auto letter = [](char one) { return (one | 0x20) >= 'a' && (one | 0x20) <= 'z'; };
  return letter(name[0]) && std::ranges::all_of(name.substr(0, colon), [&](char one) {
           return letter(one) || (one >= '0' && one <= '9') || one == '+' || one == '.' ||
                  one == '-';
         });
}

void set_object_store(std::shared_ptr<ObjectStore> store) {
  const std::scoped_lock guard(process_state().mutex);
  if (!process_state().store) process_state().store = std::move(store);
}

base::Result<std::unique_ptr<ObjectFile>> open_object(const std::string& url) {
  auto store = store_for(url);
  if (!store.ok()) return store.error();
  auto cache = BlockCache::of_environment();
  if (!cache.ok()) return cache.error();
  FoundFacts facts = find_facts(**store, url);
  if (!facts.ok()) return facts.error();
  return std::unique_ptr<ObjectFile>(
      new StoredObject(url, std::move(*store), std::move(*facts), std::move(*cache)));
}

base::Result<ObjectFacts> object_facts(const std::string& url) {
  const auto store = store_for(url);
  if (!store.ok()) return store.error();
  const FoundFacts facts = find_facts(**store, url);
  if (!facts.ok()) return facts.error();
  return ObjectFacts{(*facts)->size, (*facts)->modified, (*facts)->version};
}

base::Status write_object(const std::string& url, std::span<const std::byte> data) {
  const auto store = store_for(url);
  if (!store.ok()) return store.status();
  forget(url);
  return (*store)->write(url, data);
}

base::Status remove_object(const std::string& url) {
  const auto store = store_for(url);
  if (!store.ok()) return store.status();
  forget(url);
  return (*store)->remove(url);
}

KeptObjects::KeptObjects() {
  const std::scoped_lock guard(process_state().mutex);
  ++process_state().keepers;
}

KeptObjects::~KeptObjects() {
  const std::scoped_lock guard(process_state().mutex);
  if (--process_state().keepers == 0) process_state().kept.clear();
}

void open_together(std::span<const std::string> urls) {
  if (!keeps_objects()) return;
  std::vector<std::jthread> threads;
  try {
    for (const std::string& url : urls) threads.emplace_back([&url] { (void)open_object(url); });
  } catch (const std::system_error&) {
    return;  // the others are opened when they are used
  }
}

void keep_head(const std::string& url, std::uint64_t bytes) {
  if (!keeps_objects()) return;
  const auto object = open_object(url);
  if (!object.ok()) return;
  ObjectFacts facts = (*object)->facts();
  facts.head.resize(std::min(bytes, facts.size));
  const auto got = (*object)->read(0, facts.head);
  if (got.ok()) keep(url, std::make_shared<const ObjectFacts>(std::move(facts)));
}

}  // namespace pario::file
