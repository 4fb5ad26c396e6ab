#include "parallel/engine/pointer_store.hpp"

#include <fcntl.h>

#include <array>
#include <cstddef>
#include <mutex>
#include <shared_mutex>
#include <span>

#include "core/file/file.hpp"
#include "parallel/engine/context.hpp"

namespace pario::engine {
namespace {

using Position = base::Result<std::uint64_t>;

class PointerInMemory final : public PointerStore {
 public:
  explicit PointerInMemory(PointerWords& words) : words_(words) {}
  Position advance(std::uint64_t bytes) override { return words_.position.fetch_add(bytes); }
  std::optional<Position> advance_once(std::uint64_t number, std::uint64_t bytes,
                                       const comm::Patience& patience) override {
    std::uint64_t latest = words_.claimed.load();
    if (latest != number && words_.claimed.compare_exchange_strong(latest, number)) {
      words_.before = words_.position.fetch_add(bytes);
      words_.advanced = number;
    }
    const auto has_advanced = [&] { return words_.advanced.load() == number; };
    const base::Status waited = comm::poll_until(has_advanced, patience);
    return waited ? Position(words_.before.load()) : waited.error();
  }
  base::Status set(std::uint64_t position) override {
    words_.position = position;
    return {};
  }

 private:
  PointerWords& words_;
};

std::string make_hidden_name(const std::string& path, std::uint64_t number) {
  constexpr char kDigits[] = "0123456789abcdef";
  const auto slash = path.rfind('/');
  const std::size_t name = slash == path.npos ? 0 : slash + 1;
  std::string out = path.substr(0, name) + "." + path.substr(name) + ".pario-shared-";
  for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[number >> shift & 15];
  return out;
}

constexpr base::Extent kWord{0, sizeof(std::uint64_t)};

class PointerInFile final : public PointerStore {
 public:
  PointerInFile(const std::string& path, std::uint64_t number)
      : name_(make_hidden_name(path, number)), threads_(process_lock(name_)) {}

  Position advance(std::uint64_t bytes) override {
    return change([bytes](std::uint64_t before) { return before + bytes; });
  }
  base::Status set(std::uint64_t position) override {
    return change([position](std::uint64_t) { return position; }).status();
  }
  void remove() override { static_cast<void>(file::remove(name_)); }

 private:
  template <class Next>
  Position change(Next next) {
    const std::scoped_lock alone(*threads_);
    if (const base::Status status = open(); !status) return status.error();
    if (const base::Status status = file_->lock(kWord, true); !status) return status.error();
    Position before = read();
    base::Status stored;
    if (before && next(*before) != *before) stored = write(next(*before));
    const base::Status unlocked = file_->unlock(kWord);
    if (!stored) return stored.error();
    if (!unlocked) return unlocked.error();
    return before;
  }

  base::Status open() {
    if (file_) return {};
    auto opened = file::open({.path = name_, .flags = O_RDWR | O_CREAT, .mode = 0600});
    if (!opened) return opened.status();
    file_ = std::move(*opened);
    return {};
  }

  Position read() {
    std::array<std::uint64_t, 1> word{};
    const Position count = file_->read(0, std::as_writable_bytes(std::span(word)));
    return count ? Position(word[0]) : count;
  }

  base::Status write(std::uint64_t value) {
    const std::array<std::uint64_t, 1> word{value};
    return file_->write(0, std::as_bytes(std::span(word)));
  }

  std::string name_;
  std::shared_ptr<std::shared_mutex> threads_;
  std::unique_ptr<file::File> file_;
};

}  // namespace

std::unique_ptr<PointerStore> make_pointer_in_memory(PointerWords& words) {
  return std::make_unique<PointerInMemory>(words);
}

std::unique_ptr<PointerStore> make_pointer_in_file(const std::string& path, std::uint64_t number) {
  return std::make_unique<PointerInFile>(path, number);
}

}  // namespace pario::engine
