// Records from files into other files: joined, divided, in another format.
#pragma once

#include <string>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/check.hpp"
#include "data/records/index.hpp"
#include "data/records/team.hpp"

namespace pario::records {

struct ConvertRequest {
  std::vector<std::string> inputs;    ///< Datasets, in the order in which their records are written
  std::vector<std::string> outputs;   ///< several: each gets as many records, to within one
  OnDamage damaged = OnDamage::fail;  ///< records of the inputs
  Kind kind = Kind::lines;  ///< of the outputs; records of that kind already are copied as they are
};
struct Converted {
  std::uint64_t records = 0, skipped = 0;
  std::string first_skipped{};  ///< the error of the first record that was skipped
};
/// Outputs get their names when all are whole. Those of packed files and raw ones have their index.
base::Result<Converted> convert(const ConvertRequest& request, const Show& show = {});

}  // namespace pario::records
