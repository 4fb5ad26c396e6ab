#include "data/records/ranks.hpp"

#include <cerrno>
#include <cstring>
#include <optional>

namespace pario::records {
namespace {

using Numbers = std::vector<std::uint64_t>;

/// Encodes the errno and the text of an Error, or 0 and numbers.
std::string encode(const base::Status& status, const Numbers& numbers) {
  const std::int32_t number = status.ok()                  ? 0
                              : status.error().number == 0 ? EIO
                                                           : status.error().number;
  std::string out(reinterpret_cast<const char*>(&number), sizeof number);
  if (!status) return out + status.error().text();
  return out.append(reinterpret_cast<const char*>(numbers.data()),
                    numbers.size() * sizeof(std::uint64_t));
}

base::Result<Numbers> decode(const std::string& bytes, unsigned rank) {
  std::int32_t number = EIO;
  if (bytes.size() >= sizeof number) std::memcpy(&number, bytes.data(), sizeof number);
  const std::string rest = bytes.substr(std::min(bytes.size(), sizeof number));
  if (number != 0)
    return base::Error{
        .number = number, .operation = "shuffle", .rank = static_cast<int>(rank), .detail = rest};
  Numbers numbers(rest.size() / sizeof(std::uint64_t));
  if (!numbers.empty())
    std::memcpy(numbers.data(), rest.data(), numbers.size() * sizeof(std::uint64_t));
  return numbers;
}

}  // namespace

base::Result<std::vector<Numbers>> Ranks::exchange(const base::Status& mine,
                                                   const Numbers& numbers) const {
  if (alone()) return mine ? base::Result<std::vector<Numbers>>({numbers}) : mine.error();
  const base::Result<std::vector<std::string>> given = gather(encode(mine, numbers));
  if (!given.ok()) return given.error();
  std::vector<Numbers> out;
  for (unsigned from = 0; from < count; ++from) {
    base::Result<Numbers> each =
        from < given->size() ? decode((*given)[from], from) : decode({}, from);
    if (!each.ok()) return each.error();
    out.push_back(std::move(*each));
  }
  return out;
}

}  // namespace pario::records
