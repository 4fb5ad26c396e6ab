// How a shuffle is done: chosen from sizes, memory and the device, by a pure function. Whatever is
// chosen, the output is the same; the fused form, whose second pass is left to the loader, is not
// chosen but asked for.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/base.hpp"

namespace pario::records {

/// What the choice depends on.
struct ShuffleFacts {
  std::uint64_t bytes = 0, records = 0;  ///< of the input; records may be an estimate
  std::uint64_t memory = 0;              ///< bytes that may be used, page cache included
  bool indexed = true;                   ///< where records begin is known without reading them
  unsigned threads = 0;                  ///< of each rank; 0: as the plan thinks best
  unsigned ranks = 1;                    ///< that do it together, each with `memory`
  bool skips = false;      ///< damaged records: long ones are checked before they are written
  bool compress = false;   ///< the temporary file, if there is one
  double bandwidth = 1e9;  ///< of the device, bytes per second
  double requests = 20e3;  ///< that it serves in a second, deep in its queue
};

enum class Way : std::uint8_t {
  automatic,
  memory,   ///< read once into memory, written once
  gather,   ///< each record read from where it is, when its turn to be written has come
  buckets,  ///< read, put into buckets of a temporary file, read bucket by bucket, written
  fused,    ///< read, put into buckets of the output
};

struct ShufflePlan {
  Way way = Way::memory;
  std::uint32_t buckets = 1;
  unsigned threads = 1;
  std::uint64_t chunk = 0;   ///< bytes of input that a thread reads at a time
  std::uint64_t buffer = 0;  ///< bytes per thread and bucket
  std::uint64_t inline_limit =
      0;  ///< records longer than that stay in the input until their turn to be written
  std::uint64_t bucket_limit =
      0;  ///< bytes of a bucket and its order; what is larger is divided again
  std::uint64_t heap_limit = ~std::uint64_t{
      0};  ///< bytes of all buckets, or of what the index needs, where they are in memory
  bool direct = false;  ///< past the page cache
  double traffic = 0;   ///< bytes read and written, as a multiple of the input
  std::string reason = {};
};

/// EINVAL: with so little memory it cannot be done, or not in this way.
base::Result<ShufflePlan> plan_shuffle(const ShuffleFacts& facts, Way way = Way::automatic);
/// The plan as sentences.
std::string text_of(const ShufflePlan& plan, const ShuffleFacts& facts);
/// False: records are so short, or so long, that the choice is the same on all devices.
bool device_matters(const ShuffleFacts& facts);
/// The mean length of records from which on gathering costs less than buckets.
double break_even_length(const ShuffleFacts& facts);

}  // namespace pario::records
