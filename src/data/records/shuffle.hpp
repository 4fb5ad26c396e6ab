// The out-of-core shuffle: records in an order that is a function of the seed alone.
//
// The order is by ShuffleKeys of where each record begins in the whole input: exactly uniform, and
// the same for any number of threads, any memory and any plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/formats.hpp"
#include "data/records/index.hpp"
#include "data/records/plan.hpp"
#include "data/records/ranks.hpp"
#include "data/records/team.hpp"

namespace pario::records {

struct ShuffleRequest {
  std::vector<std::string> inputs;  ///< of one format; other than lines with an index each
                                    ///< (open_index). Raw and packed ones: one
  Kind kind = Kind::lines;
  std::vector<std::string> outputs;  ///< several: shards, whose numbers of records differ by one at
                                     ///< most. Of Way::fused: one
  std::uint64_t seed = 0;
  std::uint64_t memory = 0;  ///< bytes that the process (each rank) may have, page cache included
  std::string temporary;     ///< directory of the temporary file
  unsigned threads = 0;      ///< 0: as the plan thinks best
  Way way = Way::automatic;
  bool compress = false;  ///< the temporary file, if there is one, by LZ4
  OnDamage damaged =
      OnDamage::fail;  ///< records; those that are skipped are read once more, if they are long
  Ranks ranks = {};  ///< several: all call shuffle() with the same request, and see inputs, outputs
                     ///< and `temporary` as the same files
  std::optional<ShufflePlan> plan = {};  ///< for tests: instead of one that is chosen
  unsigned key_bits = 64;                ///< for tests
};

struct ShufflePreview {
  ShuffleFacts facts;
  ShufflePlan plan;
};
/// What shuffle() would do. Measures the device where the choice depends on it. Collective.
base::Result<ShufflePreview> preview_shuffle(const ShuffleRequest& request);

struct ShuffleOutcome {
  std::uint64_t records = 0, bytes = 0;
  ShufflePreview preview;
  std::uint64_t skipped = 0;    ///< records, of all ranks
  std::string first_skipped{};  ///< the damage of the first that this rank skipped
};
/// The outputs have their names when all of them are whole and on the disk. If it fails, nothing is
/// left; if it is killed, nothing that the next run to the same outputs does not remove.
/// Collective: an Error of one rank is one of all, `records` and `bytes` are those of all.
base::Result<ShuffleOutcome> shuffle(const ShuffleRequest& request, const Show& show = {});

}  // namespace pario::records
