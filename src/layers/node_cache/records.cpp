#include "layers/node_cache/records.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>

#include "layers/node_cache/store.hpp"

namespace pario::node_cache::records {
namespace {

// The text of a record: a letter, its values, the name, the target; separated by kEnd. The name
// distinguishes names with equal hashes.
constexpr char kChanging = 'c', kMissing = 'm', kPresent = 'p';
constexpr char kEnd = '\x01';
constexpr std::string_view kPart = "names";

using RecordText = base::Text<PATH_MAX>;

void add_status(base::TextBuffer& out, const struct stat& status) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&status);
  for (std::size_t i = 0; i < sizeof status; ++i) {
    out.add("0123456789abcdef"[bytes[i] >> 4]);
    out.add("0123456789abcdef"[bytes[i] & 15]);
  }
}

bool parse_status(std::string_view text, struct stat& status) {
  if (text.size() != 2 * sizeof status) return false;
  auto* bytes = reinterpret_cast<unsigned char*>(&status);
  for (std::size_t i = 0; i < sizeof status; ++i) {
    const char* digits = text.data() + 2 * i;
    if (std::from_chars(digits, digits + 2, bytes[i], 16).ptr != digits + 2) return false;
  }
  return true;
}

Facts parse_facts(char letter, std::string_view values) {
  Facts facts;
  if (letter == kMissing) {
    std::from_chars(values.data(), values.data() + values.size(), facts.error);
    facts.kind = Facts::Kind::missing;
  } else if (letter == kPresent && parse_status(values, facts.status)) {
    facts.kind = Facts::Kind::present;
  }
  return facts;
}

constinit std::atomic<bool> closed{false};  // as far as this process has seen

bool link_record(const RecordText& text, const char* place) {
  base::Text<PATH_MAX> terminated;
  terminated.add(text.view());
  if (!text.complete() || !terminated.complete()) return false;
  const long result = base::system_call(SYS_symlinkat, terminated.c_str(), AT_FDCWD, place);
  if (result == -ENOENT) closed.store(true, std::memory_order_relaxed);
  return result >= 0;
}

}  // namespace

bool are_closed() { return closed.load(std::memory_order_relaxed); }

Record read(std::string_view name, base::TextBuffer* target) {
  base::Text<PATH_MAX> place;
  store::add_place(place, kPart, name);
  char text[PATH_MAX];
  const long size = base::read_link(place.c_str(), text, sizeof text);
  if (size <= 0) return {};
  std::string_view rest(text, static_cast<std::size_t>(size));
  const char letter = rest[0];
  rest.remove_prefix(1);
  const std::string_view values = base::cut(rest, kEnd);
  if (base::cut(rest, kEnd) != name || letter == kChanging) return {Record::State::changing, {}};
  if (target != nullptr) target->add(rest);
  const Facts facts = parse_facts(letter, values);
  return {facts.kind == Facts::Kind::unknown ? Record::State::changing : Record::State::facts,
          facts};
}

bool store(std::string_view name, const Facts& facts, std::string_view target) {
  RecordText text;
  text.add(facts.is_missing() ? kMissing : kPresent);
  if (facts.is_missing())
    text.add(facts.error);
  else
    add_status(text, facts.status);
  text.add(kEnd).add(name).add(kEnd).add(target);
  base::Text<PATH_MAX> place;
  store::add_place(place, kPart, name);
  return link_record(text, place.c_str());
}

void store_note(std::string_view name) {
  RecordText text;
  text.add(kChanging).add(kEnd).add(name).add(kEnd);
  base::Text<PATH_MAX> temporary, place;
  store::add_temporary(temporary, kPart);
  store::add_place(place, kPart, name);
  if (!link_record(text, temporary.c_str())) return close_all();
  if (base::system_call(SYS_renameat2, AT_FDCWD, temporary.c_str(), AT_FDCWD, place.c_str(), 0) < 0)
    close_all();
}

void close_all() {
  base::Text<PATH_MAX> names, closed;
  names.add(store::directory()).add('/').add(kPart);
  store::add_temporary(closed, "closed");
  base::system_call(SYS_renameat2, AT_FDCWD, names.c_str(), AT_FDCWD, closed.c_str(), 0);
}

}  // namespace pario::node_cache::records
