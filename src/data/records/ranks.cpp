#include "data/records/ranks.hpp"

#include <cerrno>
#include <cstring>
#include <string_view>

namespace pario::records {
namespace {

using Numbers = std::vector<std::uint64_t>;

/// The operation of an Error that another rank sent; the path is preceded by its own operation.
constexpr const char* kReceived = "failed:";

/// The beginning of a message. Behind it are the texts of an Error, or numbers.
struct Head {
  std::int32_t number = 0;  ///< of an Error; 0: there is none
  std::int32_t rank = -1;
  base::Extent where{};
};

std::string encode(const base::Status& status, const Numbers& numbers) {
  Head head;
  std::string rest(reinterpret_cast<const char*>(numbers.data()),
                   numbers.size() * sizeof(std::uint64_t));
  if (!status) {
    const base::Error& error = status.error();
    head = {error.number == 0 ? EIO : error.number, error.rank, error.where};
    rest = std::string_view(error.operation) == kReceived ? "" : error.operation + std::string(" ");
    rest += error.path + '\0' + error.detail;
  }
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + rest;
}

/// The Error of a message of `rank`; one that it had received keeps its rank.
base::Error decode_error(const Head& head, const std::string& texts, unsigned rank) {
  const std::size_t end = std::min(texts.find('\0'), texts.size());
  return {.number = head.number,
          .operation = kReceived,
          .path = texts.substr(0, end),
          .where = head.where,
          .rank = head.rank < 0 ? static_cast<int>(rank) : head.rank,
          .detail = texts.substr(std::min(end + 1, texts.size()))};
}

base::Result<Numbers> decode(const std::string& bytes, unsigned rank) {
  Head head{.number = EIO};
  if (bytes.size() >= sizeof head) std::memcpy(&head, bytes.data(), sizeof head);
  const std::string rest = bytes.substr(std::min(bytes.size(), sizeof head));
  if (head.number != 0) return decode_error(head, rest, rank);
  Numbers numbers(rest.size() / sizeof(std::uint64_t));
  if (!numbers.empty())
    std::memcpy(numbers.data(), rest.data(), numbers.size() * sizeof(std::uint64_t));
  return numbers;
}

}  // namespace

base::Extent Ranks::share_of(std::uint64_t whole) const {
  const auto begin_of = [&](unsigned of) {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(whole) * of / count);
  };
  return {begin_of(rank), begin_of(rank + 1)};
}

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
