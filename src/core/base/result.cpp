#include "core/base/result.hpp"

#include "core/base/errors.hpp"

namespace pario::base {

std::string Error::text() const {
  std::string out = operation;
  if (!path.empty()) out += " " + path;
  if (!where.empty())
    out += " [" + std::to_string(where.begin) + ", " + std::to_string(where.end) + ")";
  if (number > 0) out += std::string(": ") + errno_name(number) + " (" + errno_text(number) + ")";
  if (rank >= 0) out += ", rank " + std::to_string(rank);
  if (!detail.empty()) out += ": " + detail;
  return out;
}

}  // namespace pario::base
