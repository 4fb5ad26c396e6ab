// The libraries of a kind (such as HDF5) that the loaded objects of the process call. A process may
// have several of a kind: Python's wheels bring their own.
#pragma once

#include <link.h>

#include <algorithm>
#include <atomic>
#include <string_view>

#include "core/stack/stack.hpp"
#include "core/symbols/words.hpp"

namespace pario::symbols {

/// A kind of library, by the names of its functions.
struct LibraryKind {
  const char* known;  ///< a function that all of them have, and that is not interposed
  /// True for names of functions of this kind that are not interposed.
  bool (*is_other_function)(std::string_view name);
};

/// A library of a kind as one loaded object calls it.
class CalledLibrary {
 public:
  bool is_loaded() const { return is_loaded_.load(std::memory_order_acquire); }
  /// True if the calling object has the code at an address.
  bool is_called_from(Word address) const { return code_.contains(address); }

 protected:
  /// Finds the library of the object with the code at `caller`; if `code` is empty, any library of
  /// the kind.
  void find(const LibraryKind& kind, stack::Range code, Word caller);
  /// Ends the loading by a derived class: other threads may use the library from now on.
  void set_loaded() { is_loaded_.store(true, std::memory_order_release); }
  /// The handle of the library; null: it was not found.
  void* handle() const { return handle_; }
  /// Returns the function that the caller's reference to an interposed name stands for: that of a
  /// tool behind this library, or of the library. Null if there is none.
  void* find_real(const LibraryKind& kind, const char* name) const;

 private:
  void* find_bound(const char* name, const char* version) const;
  void* find_any_function(const LibraryKind& kind) const;

  std::atomic<bool> is_loaded_ = false;
  stack::Range code_;              // of the caller
  const link_map* map_ = nullptr;  // of the caller
  void* scope_ = nullptr;          // handle of the caller
  void* handle_ = nullptr;
};

/// A CalledLibrary with the real functions of `kFunctions` interposed names, each found once.
template <std::size_t kFunctions>
class InterposedLibrary : public CalledLibrary {
 protected:
  /// Returns find_real() of the function with a number.
  void* real_at(std::size_t number, const LibraryKind& kind, const char* name) {
    std::atomic<void*>& place = real_[number];
    void* function = place.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = find_real(kind, name);
      place.store(function, std::memory_order_relaxed);
    }
    return function;
  }

 private:
  std::atomic<void*> real_[kFunctions] = {};
};

/// The libraries of a kind by caller. `Library` derives from CalledLibrary, and has a function
/// load(code, caller). The table is constinit.
template <class Library, std::size_t kMost>
class Callers {
 public:
  /// Returns the library that the object with the code at `caller` calls; for generated code and
  /// for callers beyond the limit any library of the process. Stays valid: the calling object is
  /// never unloaded.
  Library& of(Word caller) {
    const std::size_t count = std::min(claimed_.load(std::memory_order_acquire), kMost);
    for (std::size_t i = 1; i < count; ++i)
      if (libraries_[i].is_loaded() && libraries_[i].is_called_from(caller)) return libraries_[i];
    return enter(caller, count);
  }

 private:
  // Two threads may claim places for the same caller: no lock is held, because the dynamic linker
  // has one of its own.
  Library& enter(Word caller, std::size_t count) {
    stack::Object object;
    const bool has_place = count < kMost && stack::find_object(caller, object);
    const std::size_t place = has_place ? claimed_.fetch_add(1, std::memory_order_acq_rel) : 0;
    Library& library = libraries_[place < kMost ? place : 0];
    if (!library.is_loaded())
      library.load(&library == libraries_ ? stack::Range{} : object.range, caller);
    return library;
  }

  Library libraries_[kMost];  // the first one is for unknown callers
  std::atomic<std::size_t> claimed_{1};
};

}  // namespace pario::symbols
