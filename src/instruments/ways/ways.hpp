// Module ways: measures the calls by which a program can move the bytes of a file. One thread, one
// file, pieces of one size, sequential or random. The time runs from opening the file to closing
// it; memory is allocated and touched before. Only the Python module uses it; any thread may call,
// not in a signal handler.
//
// A piece begins with its own offset in the file, eight bytes in native order: the functions verify
// reads, and read writes back.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/base.hpp"

namespace pario::ways {

/// The call that moves the bytes; for writes, the corresponding write call.
enum class Call : std::uint8_t { read, pread, readv, stdio, mmap, uring };

struct Way {
  Call call = Call::pread;
  std::uint32_t at_a_time = 1;  ///< pieces of a readv; requests of io_uring in flight
  std::uint64_t buffer = 0;     ///< of stdio; 0: the default of the C library
  bool direct = false;          ///< O_DIRECT; pieces must be multiples of the device's block
  bool advised = false;         ///< posix_fadvise(2) announces the order
};

struct Work {
  bool writes = false;
  bool random = false;  ///< each piece once, in the same random order each time
  bool synced = false;  ///< ends with fdatasync(2)
  std::uint64_t piece = 1 << 16;
  double seconds = 0.1;  ///< the measurement ends after this time, or after all pieces
};

struct Timing {
  double seconds = 0;
  std::uint64_t bytes = 0;
  std::uint64_t wrong = 0;  ///< pieces with wrong contents
};

/// Times a way on an existing file, whose size does not change. Returns the errors of the calls.
base::Result<Timing> time_way(const std::string& path, const Way& way, const Work& work);

/// Returns the fraction of a file's pages in memory, 0 to 1.
base::Result<double> resident(const std::string& path);

}  // namespace pario::ways
