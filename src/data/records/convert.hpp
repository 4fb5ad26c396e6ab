// Copies records to other files: joins, divides and converts files.
#pragma once

#include <string>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/check.hpp"
#include "data/records/index.hpp"
#include "data/records/ranks.hpp"
#include "data/records/team.hpp"

namespace pario::records {

struct ConvertRequest {
  std::vector<std::string> inputs;    ///< Datasets, in the order in which their records are written
  std::vector<std::string> outputs;   ///< several: their numbers of records differ by one at most
  OnDamage damaged = OnDamage::fail;  ///< for records of the inputs
  Kind kind = Kind::lines;            ///< of the outputs; records of this kind are copied unchanged
  Ranks ranks = {};  ///< several: all call convert() with the same request, and see all files
};
struct Converted {
  std::uint64_t records = 0, skipped = 0;
  std::string first_skipped{};  ///< the error of the first record that this rank skipped
};
/// Converts files. Publishes the outputs when all are complete, packed and raw ones with an index.
/// Several ranks write the bytes of one, and read twice, because the place of a record depends on
/// the sizes of all earlier ones. An error of one rank is an error of all; each returns the counts
/// of all ranks.
base::Result<Converted> convert(const ConvertRequest& request, const Show& show = {});

}  // namespace pario::records
