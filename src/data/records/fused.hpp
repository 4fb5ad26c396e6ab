// The fused form of a shuffle: its first pass only. The output holds the records in runs of one
// bucket each, in the format of the input. Its index has the bucket of each run, and BucketOrder
// sorts the records of a bucket when they are loaded.
#pragma once

#include <cstdint>

#include "core/base/base.hpp"
#include "data/records/check.hpp"
#include "data/records/plan.hpp"
#include "data/records/shuffle.hpp"
#include "data/records/source.hpp"
#include "data/records/team.hpp"

namespace pario::records {

/// Shuffles and returns the number of records written. Publishes index and output when both are
/// complete and on the disk. For one process and one output.
base::Result<std::uint64_t> shuffle_into_buckets(const ShuffleRequest& request,
                                                 const Source& source, const ShufflePlan& plan,
                                                 SkippedRecords& skipped, const Show& show);

}  // namespace pario::records
