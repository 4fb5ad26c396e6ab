// Room ways: how fast the calls are by which a program can move the bytes of a file. One thread, one file, pieces of one size, in order or
// not. What is timed runs from opening the file to closing it; memory is there and touched before. For the Python side only.
//
// A piece begins with its own place in the file, eight bytes in the machine's order: what is read is looked at, what is written is read
// back.
#pragma once

#include <cstdint>
#include <string>

#include "base/base.hpp"

namespace pario::ways {

/// What moves the bytes, or its counterpart for writing.
enum class Call : std::uint8_t { read, pread, readv, stdio, mmap, uring };

struct Way {
  Call call = Call::pread;
  std::uint32_t at_a_time = 1;  ///< pieces of a readv; requests of io_uring under way
  std::uint64_t buffer = 0;     ///< of stdio; 0: the C library's own
  bool direct = false;          ///< past the page cache; pieces must be what the device can
  bool advised = false;         ///< the kernel is told of the order beforehand
};

struct Work {
  bool writes = false;
  bool random = false;  ///< each piece once, in an order that is the same each time
  bool synced = false;  ///< written means on the device
  std::uint64_t piece = 1 << 16;
  double seconds = 0.1;  ///< it ends after so long, or when all pieces have been moved
};

struct Taken {
  double seconds = 0;
  std::uint64_t bytes = 0;
  std::uint64_t wrong = 0;  ///< pieces that were not what they should have been
};

/// Moves pieces of a file that is there already; its size does not change. Errors are those of the calls.
base::Result<Taken> time_way(const std::string& path, const Way& way, const Work& work);

/// The part of a file's pages that is in memory, 0 to 1.
base::Result<double> resident(const std::string& path);

}  // namespace pario::ways
