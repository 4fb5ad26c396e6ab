// The registry of members by scheme, and the schemes of this module.
#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <mutex>
#include <utility>

#include "core/file/members.hpp"
#include "core/file/objects.hpp"

namespace pario::file {
namespace {

using OpenedFile = base::Result<std::unique_ptr<File>>;

base::Error make_syntax_error(const OpenRequest& request, const char* expected) {
  return {.number = EINVAL, .operation = "open", .path = request.path, .detail = expected};
}

/// Splits "VALUE:NAME": `request` keeps the name. False if there is no such value.
template <class Value>
bool take_value(OpenRequest& request, Value& value) {
  const std::size_t colon = request.path.find(':');
  if (colon == request.path.npos) return false;
  const char* const end = request.path.data() + colon;
  const auto parsed = std::from_chars(request.path.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end) return false;
  request.path.erase(0, colon + 1);
  return true;
}

/// Interrupts one call of three and shortens the transfer of another.
Fault disturb(std::atomic<unsigned>& calls) {
  constexpr Fault::Kind kKinds[] = {Fault::Kind::interrupted, Fault::Kind::short_transfer,
                                    Fault::Kind::none};
  return {kKinds[calls++ % 3]};
}

OpenedFile open_faulty(const OpenRequest& request) {
  OpenedFile inner = open(std::string_view(request.path), request);
  if (!inner.ok()) return inner;
  auto calls = std::make_shared<std::atomic<unsigned>>(0);
  return make_faulty(std::move(*inner),
                     [calls](const char*, base::Extent) { return disturb(*calls); });
}

OpenedFile open_throttled(const OpenRequest& asked) {
  OpenRequest request = asked;
  double bytes_per_second = 0;
  if (!take_value(request, bytes_per_second) || bytes_per_second <= 0)
    return make_syntax_error(request, "expected throttled:BYTES_PER_SECOND:NAME");
  OpenedFile inner = open(std::string_view(request.path), request);
  if (!inner.ok()) return inner;
  return make_throttled(std::move(*inner), bytes_per_second, 0);
}

OpenedFile open_subfiled(const OpenRequest& asked) {
  OpenRequest request = asked;
  if (!take_value(request, request.subfiles) || request.subfiles == 0)
    return make_syntax_error(request, "expected subfiled:FILES:PATH");
  return open(request);
}

OpenedFile open_null(const OpenRequest& request) { return make_null(request.path); }

base::Status remove_null(const std::string&) { return {}; }

base::Status remove_inner(const std::string& name) { return remove_named(name); }

/// The name behind a value.
base::Status remove_behind_value(const std::string& name) {
  return remove_named(std::string_view(name).substr(name.find(':') + 1));
}

OpenedFile open_local(const OpenRequest& request) { return open(request); }

struct Registry {
  std::mutex mutex;
  std::vector<Scheme> rows = {{"local", open_local, remove},
                              {"memory", open_memory, remove_memory},
                              {"null", open_null, remove_null},
                              {"faulty", open_faulty, remove_inner},
                              {"throttled", open_throttled, remove_behind_value},
                              {"subfiled", open_subfiled, remove_behind_value}};
};

Registry& registry() {
  static Registry* const the = new Registry;  // used until the process ends
  return *the;
}

/// The scheme of a name, and the rest of the name; the local scheme for plain paths.
std::pair<Scheme, std::string> split(std::string_view name) {
  Registry& all = registry();
  const std::scoped_lock guard(all.mutex);
  for (const Scheme& row : all.rows) {
    const std::string_view scheme = row.name;
    if (name.starts_with(scheme) && name.substr(scheme.size()).starts_with(':'))
      return {row, std::string(name.substr(scheme.size() + 1))};
  }
  return {all.rows.front(), std::string(name)};
}

}  // namespace

bool register_scheme(const Scheme& scheme) {
  Registry& all = registry();
  const std::scoped_lock guard(all.mutex);
  for (const Scheme& row : all.rows)
    if (std::string_view(row.name) == scheme.name) return false;
  all.rows.push_back(scheme);
  return true;
}

std::vector<std::string> scheme_names() {
  Registry& all = registry();
  const std::scoped_lock guard(all.mutex);
  std::vector<std::string> names;
  names.reserve(all.rows.size());
  for (const Scheme& row : all.rows) names.emplace_back(row.name);
  return names;
}

base::Result<std::unique_ptr<File>> open(std::string_view name, OpenRequest request) {
  if (is_url(name)) {
    auto object = open_object(std::string(name));
    return object.ok() ? base::Result<std::unique_ptr<File>>(std::move(*object)) : object.error();
  }
  auto [scheme, rest] = split(name);
  request.path = std::move(rest);
  return scheme.open(request);
}

base::Status remove_named(std::string_view name) {
  if (is_url(name)) return remove_object(std::string(name));
  const auto [scheme, rest] = split(name);
  return scheme.remove(rest);
}

}  // namespace pario::file
