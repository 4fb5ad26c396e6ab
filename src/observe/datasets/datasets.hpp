// Module datasets: the rows of calls of libraries that store arrays in files (HDF5, netCDF,
// PnetCDF, ADIOS2), which call them datasets or variables.
//
// The row of a call on a dataset has the path FILE:NAME in the layer of the library, that of
// another call the path of the file. Calls on files and of MPI inside a call keep rows of their
// own; the row of the library's call counts their time and bytes (inner_...), so that the rest is
// the time inside the library. A call of one of these libraries inside another one is passed on
// uncounted: netCDF calls HDF5.
#pragma once

#include <array>
#include <string_view>

#include "core/base/base.hpp"
#include "core/symbols/words.hpp"
#include "core/trace/trace.hpp"

namespace pario::datasets {

using symbols::Word;

/// Dimensions of datasets of which chunks and selections are known; with more, they are not.
inline constexpr int kMostDimensions = 8;

using Extents = std::uint64_t[kMostDimensions];

/// The facts of an open object. Without record: it is not known.
struct Object {
  trace::Record* record = nullptr;  ///< of the dataset, or of the file of another object
  std::uint64_t element = 0;        ///< bytes of an element in the file; 0: no dataset
  int rank = 0;                     ///< dimensions; 0: scalar, or more than kMostDimensions
  bool is_chunked = false;
  bool is_collective = false;                            ///< its transfers are, by a setting
  bool has_noted_read = false, has_noted_write = false;  ///< a selection, since it was opened
  Extents chunk = {};                                    ///< elements of a chunk in each dimension
};

/// A table of open objects by library and identifier, in which a later object may replace another
/// one. constinit.
class Objects {
 public:
  /// Returns an object that was stored; without record if there is none.
  Object find(Word library, Word id);
  /// Stores an object that has a record, and returns it.
  Object store(Word library, Word id, const Object& object);
  void forget(Word library, Word id);
  /// Forgets the objects that `belongs` selects.
  template <class Belongs>
  void forget_if(Belongs belongs) {
    const base::SpinLock guard(lock_);
    for (Place& place : places_)
      if (place.object.record != nullptr && belongs(place.library, place.id)) place = {};
  }
  /// Copies up to `most` identifiers of stored objects that `belongs` selects; returns their
  /// number.
  template <class Belongs>
  std::size_t find_ids(Belongs belongs, Word* ids, std::size_t most) {
    const base::SpinLock guard(lock_);
    std::size_t number = 0;
    for (const Place& place : places_)
      if (place.object.record != nullptr && number < most && belongs(place.library, place.id))
        ids[number++] = place.id;
    return number;
  }
  void forget_all();
  /// Replaces the rows of the parent in the child of a fork, which has the parent's open objects.
  /// False: no object was ever stored; then it touches no page of the table.
  bool renew_records();
  /// Marks an object whose selection was noted.
  void set_noted(Word library, Word id, trace::Op op);

 private:
  static constexpr std::size_t kPlaces = 1024;
  struct Place {
    Word library, id;
    Object object;
  };
  /// Returns the place of an object, otherwise one for it.
  Place& place_of(Word library, Word id);

  std::array<Place, kPlaces> places_ = {};
  std::uint64_t lock_ = 0;
  bool was_used_ = false;
};

/// Returns the row of a file by its name; null: not traced.
trace::Record* record_of_file(trace::Layer layer, const char* name);
/// Returns the row of the dataset FILE:NAME.
trace::Record* record_of_dataset(trace::Layer layer, trace::Record* file, std::string_view name);

/// Calls a function with its arguments, as symbols::forward().
using Forward = Word(void* function, const Word* words, std::size_t arguments);

/// A call of the program, from its arguments to its row in the log.
struct Call {
  trace::FunctionId number;
  trace::Op op;
  void* real;
  const Word* words;  ///< word_capacity(arguments)
  std::size_t arguments;
  const trace::LibraryCall& inside;
  Forward* forward;
  std::uint64_t start = 0, end = 0;
  Word result = 0;
  bool failed = false;
  trace::InnerCalls inner = {};

  Word operator[](int index) const { return words[index]; }
  template <class T>
  T* pointer(int index) const {
    return reinterpret_cast<T*>(words[index]);
  }
  /// Calls the library; the log shows `shown` meanwhile.
  void run(trace::CallStart shown = {});
  void forward_unrecorded() { result = forward(real, words, arguments); }
};

/// The result of a call for its row.
struct Outcome {
  std::uint64_t bytes = 0, chunks = 0;
  bool is_collective = false;
  bool is_nonblocking = false;
  std::uint64_t datasets = 1;  ///< of the call, each of which has an equal part of its time
};

/// Counts a call in a row; null: only in the row of the function.
void count(const Call& call, trace::Record* record, const Outcome& outcome = {});
/// Returns the begin of a call on an object for Call::run().
trace::CallStart show_on(const Object& object);
/// Reports the first call of a process without a library that has the function.
void report_missing(const char* function);

/// Carries out a call of a library's function, with its result or, without the function, `failed`.
/// `run` traces it, unless the library calls itself or tracing is off. `forward` calls functions
/// with other arguments than words.
template <class Call, class Library, class Function>
Word dispatch(Library& library, const Function& function, void* real, std::size_t number,
              const Word* words, Word failed, void (*run)(Call&),
              Forward* forward = symbols::forward) {
  if (real == nullptr) {
    report_missing(function.name);
    return failed;
  }
  trace::LibraryCall inside;
  if (!inside.outermost() || !library.is_known() || !trace::on()) {
    const Word result = forward(real, words, function.arguments);
    inside.end();
    return result;
  }
  Call call{{static_cast<trace::FunctionId>(number), function.op, real, words, function.arguments,
             inside, forward},
            library,
            function};
  run(call);
  inside.end();
  return call.result;
}

/// The elements of a call on a dataset.
struct Selection {
  std::uint64_t points = 0;
  std::uint64_t chunks = 0;  ///< that have some of them, by the box around them; 0: not chunked
  int rank = 0;              ///< of the box; 0: not known
  Extents box = {};          ///< extents of the box
};

/// Sets box and chunks of a selection with points from the corners of its box.
void set_place(const Object& object, const Extents& first, const Extents& last,
               Selection& selection);

/// Writes a note unless it was written before, within the limits of a process.
void note_once(std::string_view json);
void note_selection(const Object& object, trace::Op op, const Selection& selection);
void add_extents(base::Json& json, const char* key, const Extents& extents, int rank);
/// Forgets the notes that were written: the child of a fork has a log of its own.
void forget_notes();

}  // namespace pario::datasets
