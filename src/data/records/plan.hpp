// The plan of a shuffle: a pure function of sizes, memory and the device. All plans give the same
// output, except the fused form, whose second pass the loader makes; it is only used on request.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/base.hpp"

namespace pario::records {

/// The facts that determine the plan.
struct ShuffleFacts {
  std::uint64_t bytes = 0, records = 0;  ///< of the input; records may be an estimate
  std::uint64_t memory = 0;              ///< bytes that may be used, page cache included
  bool indexed = true;                   ///< the offsets of records are known without reading them
  unsigned threads = 0;                  ///< of each rank; 0: chosen by the plan
  unsigned ranks = 1;                    ///< that shuffle together, each with `memory`
  bool skips = false;      ///< damaged records: long ones are checked before they are written
  bool compress = false;   ///< the temporary file, if there is one
  double bandwidth = 1e9;  ///< of the device, bytes per second
  double requests = 20e3;  ///< random reads per second with a deep queue
};

enum class Way : std::uint8_t {
  automatic,
  memory,   ///< read once into memory, written once
  gather,   ///< each record read from its place in the input when it is written
  buckets,  ///< read, put into buckets of a temporary file, read bucket by bucket, written
  fused,    ///< read, put into buckets of the output
};

struct ShufflePlan {
  Way way = Way::memory;
  std::uint32_t buckets = 1;
  unsigned threads = 1;
  std::uint64_t chunk = 0;         ///< bytes of input that a thread reads at a time
  std::uint64_t buffer = 0;        ///< bytes per thread and bucket
  std::uint64_t inline_limit = 0;  ///< longer records stay in the input until they are written
  std::uint64_t bucket_limit =
      0;  ///< bytes of a bucket and its order; larger buckets are divided again
  std::uint64_t heap_limit =
      ~std::uint64_t{0};  ///< bytes of all buckets, or of the index, if they are in memory
  bool direct = false;    ///< direct I/O
  double traffic = 0;     ///< bytes read and written, as a multiple of the input
  std::string reason = {};
};

/// Plans a shuffle. EINVAL: the memory is too small, for all ways or for this one.
base::Result<ShufflePlan> plan_shuffle(const ShuffleFacts& facts, Way way = Way::automatic);
/// Describes the plan in sentences.
std::string text_of(const ShufflePlan& plan, const ShuffleFacts& facts);
/// False: records are so short, or so long, that the choice is the same on all devices.
bool device_matters(const ShuffleFacts& facts);
/// The mean length of records from which on gathering costs less than buckets.
double break_even_length(const ShuffleFacts& facts);

}  // namespace pario::records
