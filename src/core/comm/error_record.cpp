#include <algorithm>
#include <mutex>
#include <set>
#include <string_view>

#include "core/comm/comm.hpp"

namespace pario::comm {
namespace {

template <std::size_t n>
void copy_text(std::array<char, n>& to, std::string_view from) {
  const std::size_t length = std::min(from.size(), n - 1);
  std::copy_n(from.begin(), length, to.begin());
  to[length] = 0;
}

// Converts an operation of another process to static text, which Error::operation requires.
const char* static_text(const char* text) {
  static std::mutex mutex;
  static auto* known = new std::set<std::string>;
  const std::scoped_lock lock(mutex);
  return known->insert(text).first->c_str();
}

}  // namespace

ErrorRecord to_record(const base::Error& error) {
  ErrorRecord record;
  record.number = error.number;
  record.rank = error.rank;
  record.begin = error.where.begin;
  record.end = error.where.end;
  copy_text(record.operation, error.operation);
  copy_text(record.path, error.path);
  copy_text(record.detail, error.detail);
  return record;
}

base::Error from_record(const ErrorRecord& record) {
  return {.number = record.number,
          .operation = static_text(record.operation.data()),
          .path = record.path.data(),
          .where = {record.begin, record.end},
          .rank = record.rank,
          .detail = record.detail.data()};
}

}  // namespace pario::comm
