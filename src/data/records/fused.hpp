// The fused form of a shuffle: its first pass only. The output holds the records bucket by bucket,
// in stretches, in the format they had; its index says which bucket a stretch is of, and
// BucketOrder puts the records of a bucket in order when they are loaded.
#pragma once

#include <cstdint>

#include "core/base/base.hpp"
#include "data/records/check.hpp"
#include "data/records/plan.hpp"
#include "data/records/shuffle.hpp"
#include "data/records/source.hpp"
#include "data/records/team.hpp"

namespace pario::records {

/// Records written. Index and output get their names when both are whole and on the disk. Of one
/// process and one output.
base::Result<std::uint64_t> shuffle_into_buckets(const ShuffleRequest& request,
                                                 const Source& source, const ShufflePlan& plan,
                                                 SkippedRecords& skipped, const Show& show);

}  // namespace pario::records
