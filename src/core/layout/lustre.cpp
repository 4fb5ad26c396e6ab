#include "core/layout/lustre.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/base.hpp"

namespace pario::layout {
namespace {

// From Lustre's public headers: lov_user_md of version 1 (32 bytes) and 3 (48, with the name of a
// pool), or with a list of targets in the format of version 3, followed by objects of 24 bytes;
// lov_comp_md has entries of 48 bytes from offset 32 on, each with the offset of such a layout at
// 24.
constexpr std::uint32_t kV1 = 0x0BD10BD0, kV3 = 0x0BD30BD0, kList = 0x0BD50BD0,
                        kComposite = 0x0BD60BD0, kForeign = 0x0BD70BD0;
constexpr std::uint32_t kRaid0 = 1, kOnMetadataServer = 0x100, kOverstriped = 0x200;
constexpr std::uint16_t kAnyTarget = 0xFFFF;
constexpr std::size_t kSizeOfV1 = 32, kSizeOfV3 = 48, kSizeOfPool = 16, kSizeOfObject = 24,
                      kSizeOfEntry = 48;
constexpr std::size_t kPatternAt = 4, kUnitAt = 24, kTargetsAt = 28, kStartAt = 30, kPoolAt = 32,
                      kTargetOfObjectAt = 20;
constexpr std::size_t kSizeAt = 4, kEntryCountAt = 14, kEntriesAt = 32;
constexpr std::size_t kEntryIdAt = 0, kEntryFlagsAt = 4, kEntryBeginAt = 8, kEntryEndAt = 16,
                      kEntryPlaceAt = 24, kEntrySizeAt = 28;

constexpr std::uint32_t kStale = 0x1, kInitialised = 0x10, kExtension = 0x40;  // flags of an entry
constexpr unsigned kMirrorShift = 16;  // shift of the mirror in the ID of an entry

using Bytes = std::span<const std::byte>;
using Parts = std::span<const StripedPart>;

template <class T>
T number_at(Bytes data, std::size_t offset) {
  T value{};
  if (offset + sizeof value <= data.size()) std::memcpy(&value, data.data() + offset, sizeof value);
  return value;
}

template <class T>
void put(std::span<std::byte> data, std::size_t offset, T value) {
  std::memcpy(data.data() + offset, &value, sizeof value);
}

std::uint32_t magic_of(Bytes layout) { return number_at<std::uint32_t>(layout, 0); }

bool is_plain(Bytes layout) {
  const std::uint32_t magic = magic_of(layout);
  return magic == kV1 || magic == kV3 || magic == kList;
}

std::size_t head_size(Bytes layout) { return magic_of(layout) == kV1 ? kSizeOfV1 : kSizeOfV3; }

/// Returns the number of complete objects, at most one per stripe.
Bytes objects_of(Bytes layout) {
  const Bytes rest = layout.subspan(std::min(head_size(layout), layout.size()));
  const auto stripes = number_at<std::uint16_t>(layout, kTargetsAt);
  const std::size_t whole = rest.size() / kSizeOfObject;
  return rest.first((stripes == 0 ? whole : std::min<std::size_t>(whole, stripes)) * kSizeOfObject);
}

Striping read_plain(Bytes layout) {
  Striping striping{number_at<std::uint32_t>(layout, kUnitAt),
                    number_at<std::uint16_t>(layout, kTargetsAt), -1};
  const Bytes objects = objects_of(layout);
  if (objects.size() >= kSizeOfObject) {
    striping.start =
        static_cast<std::int32_t>(number_at<std::uint32_t>(objects, kTargetOfObjectAt));
    // Of a directory or a request; a file with objects has a generation there.
  } else if (layout.size() >= kSizeOfV1) {
    const auto start = number_at<std::uint16_t>(layout, kStartAt);
    striping.start = start == kAnyTarget ? -1 : start;
  }
  return striping;
}

/// A range of a composite layout.
struct Component {
  std::uint32_t id, flags;
  base::Extent range;
  std::size_t place, size;  // of its layout, in the attribute
  Bytes layout;             // empty: outside of the attribute

  std::uint32_t mirror() const { return id >> kMirrorShift; }
  bool is_stale() const { return (flags & kStale) != 0; }
  bool is_on_metadata_server() const {
    return (number_at<std::uint32_t>(layout, kPatternAt) & kOnMetadataServer) != 0;
  }
  /// True if the entry describes the places of bytes: neither space to grow into, nor another
  /// system's.
  bool is_striped() const { return (flags & kExtension) == 0 && magic_of(layout) != kForeign; }
};

std::size_t entries_of(Bytes attribute) {
  return number_at<std::uint16_t>(attribute, kEntryCountAt);
}

Component component_of(Bytes attribute, std::size_t number) {
  const std::size_t entry = kEntriesAt + number * kSizeOfEntry;
  Component out{.id = number_at<std::uint32_t>(attribute, entry + kEntryIdAt),
                .flags = number_at<std::uint32_t>(attribute, entry + kEntryFlagsAt),
                .range = {number_at<std::uint64_t>(attribute, entry + kEntryBeginAt),
                          number_at<std::uint64_t>(attribute, entry + kEntryEndAt)},
                .place = number_at<std::uint32_t>(attribute, entry + kEntryPlaceAt),
                .size = number_at<std::uint32_t>(attribute, entry + kEntrySizeAt),
                .layout = {}};
  if (out.place + out.size <= attribute.size()) out.layout = attribute.subspan(out.place, out.size);
  return out;
}

const char* problem_of_component(Bytes attribute, const Component& component) {
  if (component.range.end <= component.range.begin) return "a component ends before it begins";
  if (component.place < kEntriesAt + entries_of(attribute) * kSizeOfEntry)
    return "the layout of a component lies in the head";
  if (component.layout.empty()) return "the layout of a component lies behind the end";
  if (magic_of(component.layout) == kForeign) return nullptr;
  if (!is_plain(component.layout)) return "a component has no plain layout";
  return component.layout.size() < head_size(component.layout)
             ? "the layout of a component is cut off"
             : nullptr;
}

const char* problem_of_composite(Bytes attribute) {
  if (attribute.size() < kEntriesAt) return "a composite layout has 32 bytes at least";
  if (entries_of(attribute) == 0) return "a composite layout without components";
  if (attribute.size() < kEntriesAt + entries_of(attribute) * kSizeOfEntry)
    return "too short for its components";
  for (std::size_t i = 0; i < entries_of(attribute); ++i)
    if (const char* problem = problem_of_component(attribute, component_of(attribute, i)))
      return problem;
  return nullptr;
}

/// Returns the mirror that readers use: the first that is up to date, else the first.
std::uint32_t current_mirror(Bytes attribute) {
  for (std::size_t i = 0; i < entries_of(attribute); ++i)
    if (const Component component = component_of(attribute, i); !component.is_stale())
      return component.mirror();
  return component_of(attribute, 0).mirror();
}

Striping striping_of_composite(Bytes attribute) {
  Component best{};
  const std::uint32_t mirror = current_mirror(attribute);
  for (std::size_t i = 0; i < entries_of(attribute); ++i) {
    const Component component = component_of(attribute, i);
    if (component.mirror() != mirror || !component.is_striped()) continue;
    const auto rank = [](const Component& one) {
      return std::pair(!one.is_on_metadata_server(), one.range.begin);
    };
    if (best.layout.empty() || rank(component) > rank(best)) best = component;
  }
  return best.layout.empty() ? Striping() : read_plain(best.layout);
}

std::string pool_of(Bytes layout) {
  if (magic_of(layout) == kV1 || layout.size() < kSizeOfV3) return {};
  const auto* name = reinterpret_cast<const char*>(layout.data() + kPoolAt);
  return {name, ::strnlen(name, kSizeOfPool)};
}

StripedPart plain_part(Bytes layout) {
  StripedPart part;
  part.striping = read_plain(layout);
  part.pool = pool_of(layout);
  const auto pattern = number_at<std::uint32_t>(layout, kPatternAt);
  part.overstriped = (pattern & kOverstriped) != 0;
  part.on_metadata_server = (pattern & kOnMetadataServer) != 0;
  for (Bytes objects = objects_of(layout); objects.size() >= kSizeOfObject;
       objects = objects.subspan(kSizeOfObject))
    part.targets.push_back(number_at<std::uint32_t>(objects, kTargetOfObjectAt));
  return part;
}

std::size_t size_of(const StripedPart& part) {
  if (!part.targets.empty()) return kSizeOfV3 + part.targets.size() * kSizeOfObject;
  return part.pool.empty() ? kSizeOfV1 : kSizeOfV3;
}

std::uint16_t start_of(const StripedPart& part) {
  if (!part.targets.empty()) return static_cast<std::uint16_t>(part.targets.front());
  return part.striping.start < 0 ? kAnyTarget : static_cast<std::uint16_t>(part.striping.start);
}

void put_part(std::span<std::byte> out, const StripedPart& part) {
  constexpr std::uint64_t kLargestUnit = (std::uint64_t{1} << 32) - kStripeGranule;
  const bool list = !part.targets.empty();
  const std::size_t count =
      list ? part.targets.size() : std::min(part.striping.targets, kAllTargets);
  put(out, 0, list ? kList : part.pool.empty() ? kV1 : kV3);
  put(out, kPatternAt, kRaid0 | (part.overstriped ? kOverstriped : 0));
  put(out, kUnitAt,
      static_cast<std::uint32_t>(
          base::round_up(std::min(part.striping.unit, kLargestUnit), kStripeGranule)));
  put(out, kTargetsAt, static_cast<std::uint16_t>(count));
  put(out, kStartAt, start_of(part));
  if (out.size() >= kSizeOfV3)
    std::memcpy(out.data() + kPoolAt, part.pool.data(),
                std::min(part.pool.size(), kSizeOfPool - 1));
  for (std::size_t i = 0; i < part.targets.size(); ++i)
    put(out, kSizeOfV3 + i * kSizeOfObject + kTargetOfObjectAt, part.targets[i]);
}

/// Returns the size of the headers, before the layouts of the parts.
std::size_t size_of_head(Parts parts) {
  return parts.size() > 1 ? kEntriesAt + parts.size() * kSizeOfEntry : 0;
}

void put_entry(std::span<std::byte> out, base::Extent range, std::size_t place, std::size_t size) {
  put(out, kEntryBeginAt, range.begin);
  put(out, kEntryEndAt, range.end);
  put(out, kEntryPlaceAt, static_cast<std::uint32_t>(place));
  put(out, kEntrySizeAt, static_cast<std::uint32_t>(size));
}

}  // namespace

bool is_lustre(Bytes attribute) { return is_plain(attribute) || magic_of(attribute) == kComposite; }

const char* lustre_problem(Bytes attribute) {
  if (magic_of(attribute) == kComposite) return problem_of_composite(attribute);
  return attribute.size() < head_size(attribute)
             ? "a plain layout has at least 32 bytes, with a pool 48"
             : nullptr;
}

Striping lustre_striping(Bytes attribute) {
  if (lustre_problem(attribute) != nullptr) return {};
  return is_plain(attribute) ? read_plain(attribute) : striping_of_composite(attribute);
}

std::vector<StripedPart> lustre_parts(Bytes attribute) {
  if (lustre_problem(attribute) != nullptr) return {};
  if (is_plain(attribute)) return {plain_part(attribute)};
  std::vector<StripedPart> parts;
  for (std::size_t i = 0; i < entries_of(attribute); ++i) {
    const Component component = component_of(attribute, i);
    if (!component.is_striped()) continue;
    parts.push_back(plain_part(component.layout));
    parts.back().range = component.range;
    parts.back().waits = (component.flags & kInitialised) == 0;
    parts.back().mirror = component.mirror();
    parts.back().stale = component.is_stale();
  }
  return parts;
}

std::size_t lustre_attribute_size(Parts parts) {
  std::size_t size = size_of_head(parts);
  for (const StripedPart& part : parts) size += size_of(part);
  return size;
}

void put_lustre_attribute(std::span<std::byte> out, Parts parts) {
  std::ranges::fill(out, std::byte{0});
  std::size_t place = size_of_head(parts);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t size = size_of(parts[i]);
    put_part(out.subspan(place, size), parts[i]);
    if (parts.size() > 1)
      put_entry(out.subspan(kEntriesAt + i * kSizeOfEntry), parts[i].range, place, size);
    place += size;
  }
  if (parts.size() == 1) return;
  put(out, 0, kComposite);
  put(out, kSizeAt, static_cast<std::uint32_t>(out.size()));
  put(out, kEntryCountAt, static_cast<std::uint16_t>(parts.size()));
}

std::vector<std::byte> lustre_attribute(Parts parts) {
  std::vector<std::byte> out(lustre_attribute_size(parts));
  put_lustre_attribute(out, parts);
  return out;
}

}  // namespace pario::layout
