// Stripes of Lustre and Ceph, subfiles, layouts, mounts, columns of events, hints.
#include <algorithm>

#include "core/base/base.hpp"
#include "core/hints/hints.hpp"
#include "core/layout/layout.hpp"
#include "core/pattern/pattern.hpp"
#include "core/trace/columns.hpp"
#include "core/trace/mountinfo.hpp"
#include "targets.hpp"

namespace pario::fuzz {

void stripes(Input input) {
  const layout::Striping striping = layout::read_striping(input);
  const layout::StripedFile file = layout::read_striped_file(input);
  if (!file.parts.empty()) {
    const auto attribute = layout::lustre_attribute(file.parts);
    require(attribute.size() == layout::lustre_attribute_size(file.parts),
            "an attribute has the size that was asked for");
    require(layout::read_striped_file(attribute).parts.size() == file.parts.size(),
            "an attribute keeps its parts");
  }
  base::Text<512> text;
  layout::add_ceph_attribute(text, striping, input);
  require(
      layout::read_striping(std::as_bytes(std::span(text.view()))).unit % layout::kStripeGranule ==
          0,
      "a unit of Ceph is whole granules");
}

void subfile_map(Input input) {
  const auto map = layout::SubfileMap::parse(as_text(input));
  if (!map) return;
  require(layout::SubfileMap::parse(map->text()) == map,
          "a map of subfiles that was written is the same");
  for (const std::uint64_t offset : {std::uint64_t{0}, map->unit - 1, std::uint64_t{1} << 40}) {
    const auto place = map->place_of(offset);
    require(place.file < map->files && place.length > 0, "a byte lies in one of the files");
  }
}

void layout_text(Input input) {
  const auto layout = pattern::TypeMap::parse(as_text(input));
  if (!layout.ok()) return;
  const auto again = pattern::TypeMap::parse(layout->text());
  require(again.ok() && *again == *layout, "a layout that was written is the same");
}

void mountinfo(Input input) {
  const std::string_view text = as_text(input);
  for (const std::uint64_t id : {0, 1, 36}) {
    const auto mount = trace::find_mount(text, id, 0);
    require(!mount || id == 0 || mount->id == id, "a mount that was found has the id");
  }
}

void event_columns(Input input) {
  std::vector<trace::Event> events(input.size() / sizeof(trace::Event));
  Bytes columns(events.size() * sizeof(trace::Event));
  trace::decode_columns(input.data(), events);
  trace::encode_columns(events, columns.data());
  require(std::ranges::equal(columns, input.first(columns.size())),
          "columns that were written are the same");
}

/// Input: a path, a line end, specifications of buffers.
void stream_hints(Input input) {
  std::string_view rest = as_text(input);
  const std::string_view path = base::cut(rest, '\n');
  hints::StreamHints found = hints::default_stream_hints();
  const bool matches = hints::stream_hints_of(rest, path, found);
  const std::string_view own = hints::stream_specification_of(rest, path);
  require(own.size() <= rest.size() && (matches || own.empty()),
          "a specification is a part of all");
  hints::check_stream_specifications("FUZZ", rest, [](std::string_view) {});
}

/// Input: a path, a line end, specifications of hints; each line of it is also a key and a value.
void file_hints(Input input) {
  std::string_view rest = as_text(input);
  const std::string path(base::cut(rest, '\n')),
      variable = "PARIO_HINTS=" + std::string(rest.substr(0, rest.find('\0')));
  const char* environment[] = {variable.c_str(), nullptr};
  std::vector<hints::Rejected> rejected;
  hints::FileHints file = hints::default_file_hints();
  for (const auto& setting :
       hints::settings_from_environment(path, const_cast<char**>(environment), rejected)) {
    std::string reason;
    require(hints::set(file, setting, reason) || !reason.empty(), "a refused hint has a reason");
  }
  hints::StripingHints striping = hints::default_striping_hints();
  static_cast<void>(hints::striping_hints_of(rest, path, striping));
  static_cast<void>(hints::matches(rest.substr(0, 200), path.substr(0, 200)));
  hints::HintSet set = hints::defaults();
  base::Text<1024> error;
  const std::string_view key = base::cut(rest, '=');
  require(hints::set(set, key, rest, error) || !error.view().empty(),
          "a refused option has a reason");
}

}  // namespace pario::fuzz
