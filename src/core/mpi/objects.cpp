// Finds the MPI among the objects that this process has loaded.
#include "core/mpi/objects.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

namespace pario::mpi {
namespace {

bool is_standard(const std::string& path) {
  return path.substr(path.rfind('/') + 1).starts_with("libmpi_abi.so");
}

int add_candidate(dl_phdr_info* info, std::size_t, void* data) {
  const std::string path = info->dlpi_name;
  if (path.substr(path.rfind('/') + 1).starts_with("libmpi"))
    static_cast<std::vector<std::string>*>(data)->push_back(path);
  return 0;
}

/// Opens the loaded MPI library once more, if there is one. The library of the standard ABI comes
/// first, because it may sit on top of another.
Object open_loaded_mpi() {
  std::vector<std::string> paths;
  dl_iterate_phdr(add_candidate, &paths);
  std::stable_partition(paths.begin(), paths.end(), is_standard);
  for (const auto& path : paths) {
    void* handle = dlopen(path.c_str(), RTLD_NOLOAD | RTLD_LAZY);
    if (handle && dlsym(handle, "PMPI_Init")) return {handle, is_standard(path)};
    if (handle) dlclose(handle);
  }
  return {};
}

}  // namespace

const Object& mpi_object() {
  static std::atomic<bool> known{false};
  static std::mutex mutex;
  static Object object;
  if (known.load(std::memory_order_acquire)) return object;
  const std::lock_guard lock(mutex);
  if (!object.handle) object = open_loaded_mpi();
  known.store(object.handle != nullptr, std::memory_order_release);
  return object;
}

void* find(const char* symbol) {
  if (void* next = dlsym(RTLD_NEXT, symbol)) return next;
  void* handle = mpi_object().handle;
  return handle ? dlsym(handle, symbol) : nullptr;
}

Word address(const char* variable) {
  void* found = dlsym(RTLD_DEFAULT, variable);
  return reinterpret_cast<Word>(found ? found : find(variable));
}

}  // namespace pario::mpi
