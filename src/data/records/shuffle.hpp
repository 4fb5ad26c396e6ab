// The out-of-core shuffle: records in an order that is a function of the seed alone.
//
// Records are sorted by ShuffleKeys of their offsets in the whole input: the order is exactly
// uniform, and the same for any number of threads, any memory and any plan.
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
  std::vector<std::string> inputs;  ///< of one format; formats other than lines need an index
                                    ///< (open_index). Raw and packed: one input
  Kind kind = Kind::lines;
  std::vector<std::string> outputs;  ///< several: shards, whose numbers of records differ by one at
                                     ///< most. Way::fused: one output
  std::uint64_t seed = 0;
  std::uint64_t memory = 0;  ///< bytes that the process (each rank) may have, page cache included
  std::string temporary;     ///< directory of the temporary file
  unsigned threads = 0;      ///< 0: chosen by the plan
  Way way = Way::automatic;
  bool compress = false;              ///< the temporary file, if there is one, by LZ4
  OnDamage damaged = OnDamage::fail;  ///< skip: reads long records twice
  Ranks ranks = {};  ///< several: all call shuffle() with the same request, and see inputs, outputs
                     ///< and `temporary` as the same files
  std::optional<ShufflePlan> plan = {};  ///< for tests: instead of the chosen one
  unsigned key_bits = 64;                ///< for tests
};

struct ShufflePreview {
  ShuffleFacts facts;
  ShufflePlan plan;
};
/// Previews shuffle(). Measures the device if the plan depends on it. Collective.
base::Result<ShufflePreview> preview_shuffle(const ShuffleRequest& request);

struct ShuffleOutcome {
  std::uint64_t records = 0, bytes = 0;
  ShufflePreview preview;
  std::uint64_t skipped = 0;    ///< records, of all ranks
  std::string first_skipped{};  ///< the damage of the first that this rank skipped
};
/// Shuffles records. Publishes the outputs when all are complete and on the disk. After an Error no
/// files remain; after a kill the next shuffle to the same outputs removes them. Collective: all
/// ranks return an Error of one rank; `records` and `bytes` are those of all.
base::Result<ShuffleOutcome> shuffle(const ShuffleRequest& request, const Show& show = {});

}  // namespace pario::records
