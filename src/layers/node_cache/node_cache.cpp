#include "layers/node_cache/node_cache.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "layers/node_cache/records.hpp"
#include "layers/node_cache/store.hpp"

namespace pario::node_cache {
namespace {

using records::Record;

constexpr int kMostLinks = 8;  // that are followed
/// The facts of the root of a tree that matter for the names in it.
constexpr Facts kRoot = [] {
  Facts root = {.kind = Facts::Kind::present};
  root.status.st_mode = S_IFDIR;
  return root;
}();

/// Calls `use(named, real)` for each tree until it returns true.
template <class Use>
bool find_tree(const Use& use) {
  for (std::string_view rest = store::trees(); !rest.empty();) {
    std::string_view real = base::cut(rest, ':');
    const std::string_view named = base::cut(real, '=');
    if (!named.empty() && use(named, real.empty() ? named : real)) return true;
  }
  return false;
}

bool is_within(std::string_view path, std::string_view tree) {
  return path.starts_with(tree) && (path.size() == tree.size() || path[tree.size()] == '/');
}

bool is_root(std::string_view path) {
  return find_tree([path](std::string_view, std::string_view real) { return path == real; });
}

bool is_below_tree(std::string_view path) {
  return !is_root(path) && find_tree([path](std::string_view, std::string_view real) {
    return is_within(path, real);
  });
}

Facts ask(std::string_view path) {
  base::Text<PATH_MAX> name;
  Facts facts;
  const int result =
      base::status_of(AT_FDCWD, name.add(path).c_str(), AT_SYMLINK_NOFOLLOW, facts.status);
  if (result >= 0) facts.kind = Facts::Kind::present;
  if (result == -ENOENT || result == -ENOTDIR) facts.kind = Facts::Kind::missing;
  facts.error = result < 0 ? -result : 0;
  return facts;
}

Facts find_text(std::string_view path);

/// The facts of a directory in which names are; one that the job changes is asked about again.
Facts find_directory(std::string_view path) {
  if (is_root(path)) return kRoot;
  const Record record = records::read(path);
  if (record.state == Record::State::facts) return record.facts;
  if (record.state == Record::State::absent) return find_text(path);
  return find_directory(store::parent_of(path)).is(S_IFDIR) ? ask(path) : Facts{};
}

/// Asks the file system, and stores the answer.
Facts fill(std::string_view path) {
  const store::Lock lock(path);
  const Record record = records::read(path);
  if (record.state == Record::State::facts) return record.facts;
  if (record.state == Record::State::changing) return {};
  const Facts facts = ask(path);
  base::Text<PATH_MAX> name;
  char target[PATH_MAX] = "";
  if (facts.is(S_IFLNK)) base::read_link(name.add(path).c_str(), target, sizeof target);
  // An answer that is not stored is not used: a listing or a copy would not be checked against it.
  const bool stored = facts.kind != Facts::Kind::unknown && records::store(path, facts, target);
  return stored ? facts : Facts{};
}

Facts find_text(std::string_view path) {
  const Record record = records::read(path);
  if (record.state == Record::State::facts) return record.facts;
  if (record.state == Record::State::changing) return {};
  if (is_root(path)) return fill(path);
  const Facts above = find_directory(store::parent_of(path));
  // Names in a missing directory are missing, too; they are not stored, because the directory may
  // be made.
  if (above.is_missing()) return above;
  return above.is(S_IFDIR) ? fill(path) : Facts{};
}

/// True if the text of a name suffices to find its file: it does not end in `/.`, and each `..`
/// follows a directory of a tree that is no symbolic link.
bool is_unambiguous(int directory, std::string_view path) {
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view component = path.substr(at, end - at);
    if (component == "." && at != 0 && end == path.size()) return false;
    if (component == "..") {
      base::Text<PATH_MAX> before;
      const base::Path above(directory, before.add(path.substr(0, at)).c_str());
      if (!is_below_tree(above.view()) || !find(Name(above.view())).is(S_IFDIR)) return false;
    }
    at = end + 1;
  }
  return true;
}

bool is_usable(const Name& name) { return name.is_cached() && is_open() && !records::are_closed(); }

/// The name to which a symbolic link points.
Name name_of_target(std::string_view link) {
  base::Text<PATH_MAX> target, joined;
  records::read(link, &target);
  if (target.view().empty()) return Name(std::string_view{});
  if (target.view()[0] != '/') joined.add(store::parent_of(link)).add('/');
  return Name(AT_FDCWD, joined.add(target.view()).c_str());
}

}  // namespace

bool is_open() { return !store::directory().empty(); }

Name::Name(int directory, const char* path) {
  if (path == nullptr || *path == '\0') return;
  const base::Path whole(directory, path);
  if (!whole.is_known()) return;
  resolve(whole.view());
  const std::string_view given = path;
  needs_directory_ = given.ends_with('/');
  cached_ = cached_ && is_unambiguous(directory, given);
}

Name::Name(int descriptor) {
  const base::Path whole(descriptor);
  if (whole.is_known()) resolve(whole.view());
}

Name::Name(std::string_view path) { resolve(path); }

void Name::resolve(std::string_view path) {
  cached_ = find_tree([this, path](std::string_view named, std::string_view real) {
    if (!is_within(path, named)) return false;
    text_.add(real).add(path.substr(named.size()));
    return true;
  });
  if (!cached_) text_.add(path);
}

Facts find(const Name& name) { return is_usable(name) ? find_text(name.view()) : Facts{}; }

Facts find_behind_links(const Name& name, base::TextBuffer& end) {
  if (!is_usable(name)) return {};
  char path[PATH_MAX];
  std::string_view current(path, name.view().copy(path, sizeof path));
  for (int links = 0; links <= kMostLinks; ++links) {
    const Facts facts = find_text(current);
    if (!facts.is(S_IFLNK)) {
      end.add(current);
      return facts;
    }
    const Name target = name_of_target(current);
    if (!target.is_cached()) return {};
    current = {path, target.view().copy(path, sizeof path)};
  }
  return {};
}

std::size_t read_target(const Name& name, char* out, std::size_t size) {
  base::Text<PATH_MAX> target;
  if (!records::read(name.view(), &target).facts.is(S_IFLNK)) return 0;
  return target.view().copy(out, size);
}

void note_change(const Name& name) {
  if (!name.is_known() || !is_open()) return;
  if (!is_below_tree(name.view()) && !is_root(name.view())) return;
  records::store_note(name.view());
  base::Text<PATH_MAX> copy;
  store::add_place(copy, "copies", name.view());
  base::system_call(SYS_unlinkat, AT_FDCWD, copy.c_str(), 0);
  if (!is_below_tree(name.view())) return;
  const std::string_view parent = store::parent_of(name.view());
  const bool has_links =
      !name.is_cached() || (!find_directory(parent).is(S_IFDIR) && ask(parent).is_present());
  records::store_note(parent);
  if (has_links) records::close_all();  // the file may have another name, too
}

void note_change_of_tree(const Name& name) {
  if (name.is_known() && is_open() && is_below_tree(name.view()) && ask(name.view()).is(S_IFDIR))
    records::close_all();
}

}  // namespace pario::node_cache
