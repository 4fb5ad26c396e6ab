#include "parallel/mpiio/file.hpp"

#include <array>
#include <atomic>
#include <unordered_map>

#include "parallel/mpiio/implementations.hpp"
#include "parallel/mpiio/library.hpp"

namespace pario::mpiio {
namespace {

/// The table of open files. Never destroyed: destructors call MPI, too.
struct Open {
  std::mutex mutex;
  std::unordered_map<Word, std::shared_ptr<OpenFile>> by_handle;
  std::vector<Word> by_index;  // Fortran's integers; 0: free
};

Open& open_table() {
  static Open& instance = *new Open;
  return instance;
}

/// The handles of open files for look-ups without a lock; 0: free. A handle that found no place is
/// in the table of open files only.
class QuickHandles {
 public:
  bool has(Word handle) const { return place_of(handle, handle) != kNone; }
  void add(Word handle) {
    if (const std::size_t free = place_of(handle, 0); free != kNone) places_[free] = handle;
  }
  void remove(Word handle) {
    if (const std::size_t found = place_of(handle, handle); found != kNone) places_[found] = 0;
  }

 private:
  static constexpr std::size_t kPlaces = 64, kProbes = 4, kNone = kPlaces;

  /// The first place for `handle` that contains `content`.
  std::size_t place_of(Word handle, Word content) const {
    for (std::size_t i = 0; i < kProbes; ++i) {
      const std::size_t place = (handle / sizeof(OpenFile) + i) % kPlaces;
      if (places_[place].load(std::memory_order_acquire) == content) return place;
    }
    return kNone;
  }

  std::array<std::atomic<Word>, kPlaces> places_ = {};
};

constinit QuickHandles quick_handles;  // changed with the lock of the table

constexpr int kFirstIndex = 1024;  // larger than MPI_FILE_NULL (0, or 0x118 in the standard ABI)

}  // namespace

bool is_file_null(Word handle) { return handle == 0 || handle == h(MPI_FILE_NULL); }

std::shared_ptr<OpenFile> find(Word handle) {
  auto& all = open_table();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_handle.find(handle);
  return found == all.by_handle.end() ? nullptr : found->second;
}

OpenFile* find_in_use(Word handle) {
  if (handle != 0 && quick_handles.has(handle)) return reinterpret_cast<OpenFile*>(handle);
  return find(handle).get();
}

Word add(std::shared_ptr<OpenFile> file) {
  auto& all = open_table();
  const std::lock_guard lock(all.mutex);
  const auto handle = reinterpret_cast<Word>(file.get());
  all.by_handle[handle] = std::move(file);
  quick_handles.add(handle);
  return handle;
}

void erase(Word handle) {
  auto& all = open_table();
  const std::lock_guard lock(all.mutex);
  quick_handles.remove(handle);
  all.by_handle.erase(handle);
  for (Word& entry : all.by_index) {
    if (entry == handle) entry = 0;
  }
}

std::vector<std::shared_ptr<OpenFile>> open_files() {
  auto& all = open_table();
  const std::lock_guard lock(all.mutex);
  std::vector<std::shared_ptr<OpenFile>> files;
  files.reserve(all.by_handle.size());
  for (const auto& [handle, file] : all.by_handle) files.push_back(file);
  return files;
}

Word to_fortran(const Call& call) {
  auto& all = open_table();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_handle.find(call[0]);
  if (found == all.by_handle.end())
    return (lib().flavour == mpi::Flavour::standard ? h(MPI_FILE_NULL) : 0);
  for (std::size_t i = 0; i < all.by_index.size(); ++i) {
    if (all.by_index[i] == call[0]) return i + kFirstIndex;
  }
  for (std::size_t i = 0; i < all.by_index.size(); ++i) {
    if (all.by_index[i] == 0) {
      all.by_index[i] = call[0];
      return i + kFirstIndex;
    }
  }
  all.by_index.push_back(call[0]);
  return all.by_index.size() - 1 + kFirstIndex;
}

Word from_fortran(const Call& call) {
  auto& all = open_table();
  const std::lock_guard lock(all.mutex);
  const int index = call.integer(0) - kFirstIndex;
  if (index < 0 || static_cast<std::size_t>(index) >= all.by_index.size() ||
      all.by_index[static_cast<std::size_t>(index)] == 0)
    return h(MPI_FILE_NULL);
  return all.by_index[static_cast<std::size_t>(index)];
}

}  // namespace pario::mpiio
