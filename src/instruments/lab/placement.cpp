#include "instruments/lab/placement.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace pario::lab {
namespace {

constexpr std::uint32_t kMostStripes = 64;  // Lustre's overstriping
constexpr std::uint64_t kUsualUnit = 1 << 20;

using Bytes = std::span<const std::byte>;

struct RecordHead {
  std::uint64_t id;
  std::uint32_t start, targets;
};

bool is_good_part(const layout::StripedPart& part, std::uint32_t targets) {
  if (part.striping.unit % layout::kStripeGranule != 0) return false;
  return std::ranges::all_of(part.targets, [&](std::uint32_t target) { return target < targets; });
}

bool is_good_ceph(const layout::StripedFile& file) {
  const layout::StripedPart& part = file.parts.front();
  const std::uint64_t unit = part.striping.unit;
  const bool sized = unit > 0 && file.object_size > 0 && file.object_size % unit == 0;
  return sized && part.striping.targets > 0 && (part.pool.empty() || part.pool == "data");
}

std::uint32_t stripes_of(const layout::StripedPart& part, std::uint32_t targets) {
  const std::uint32_t wanted =
      std::max(part.striping.targets == layout::kAllTargets ? targets : part.striping.targets, 1U);
  return std::min(wanted, part.overstriped ? kMostStripes : targets);
}

using Start = std::function<std::uint32_t(std::uint32_t)>;

void decide_part(layout::StripedPart& part, std::uint32_t targets, const Start& start) {
  if (part.striping.unit == 0) part.striping.unit = kUsualUnit;
  if (part.targets.empty()) {
    const std::uint32_t count = stripes_of(part, targets);
    const bool any = part.striping.start < 0 || part.striping.start == layout::kAllTargets;
    const std::uint32_t first =
        any ? start(count) : static_cast<std::uint32_t>(part.striping.start);
    for (std::uint32_t i = 0; i < count; ++i) part.targets.push_back((first + i) % targets);
  }
  part.striping.targets = static_cast<std::uint32_t>(part.targets.size());
}

}  // namespace

std::vector<std::byte> ceph_attribute(const layout::Striping& striping, std::uint64_t object_size) {
  const std::string text = "stripe_unit=" + std::to_string(striping.unit) +
                           " stripe_count=" + std::to_string(striping.targets) +
                           " object_size=" + std::to_string(object_size) + " pool=data";
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> default_attribute(Personality personality) {
  layout::StripedPart part;
  part.striping = {kUsualUnit, 1, -1};
  return personality == Personality::lustre ? layout::lustre_attribute(std::span(&part, 1))
                                            : ceph_attribute({4 << 20, 1, -1}, 4 << 20);
}

bool is_valid_attribute(Personality personality, Bytes attribute, std::uint32_t targets) {
  const layout::StripedFile file = layout::read_striped_file(attribute);
  if (file.parts.empty() || (file.object_size != 0) != (personality == Personality::ceph))
    return false;
  if (!std::ranges::all_of(file.parts,
                           [&](const auto& part) { return is_good_part(part, targets); }))
    return false;
  return personality == Personality::lustre || is_good_ceph(file);
}

std::optional<Placement> Placement::decide(Personality personality, Bytes attribute,
                                           std::uint32_t targets, std::uint64_t id,
                                           const Start& start) {
  if (!is_valid_attribute(personality, attribute, targets)) return std::nullopt;
  layout::StripedFile file = layout::read_striped_file(attribute);
  if (personality == Personality::lustre) {
    for (layout::StripedPart& part : file.parts) decide_part(part, targets, start);
    return with(layout::lustre_attribute(file.parts), id, 0, targets);
  }
  const layout::Striping& striping = file.parts.front().striping;
  return with(ceph_attribute(striping, file.object_size), id, start(striping.targets), targets);
}

std::optional<Placement> Placement::with(std::vector<std::byte> attribute, std::uint64_t id,
                                         std::uint32_t start, std::uint32_t targets) {
  Placement placement;
  placement.id_ = id, placement.start_ = start, placement.targets_ = targets;
  placement.file_ = layout::read_striped_file(attribute);
  placement.attribute_ = std::move(attribute);
  return placement.file_.parts.empty() || targets == 0 ? std::nullopt
                                                       : std::optional(std::move(placement));
}

std::optional<Placement> Placement::read(Bytes record) {
  RecordHead head{};
  if (record.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, record.data(), sizeof head);
  const Bytes attribute = record.subspan(sizeof head);
  return with({attribute.begin(), attribute.end()}, head.id, head.start, head.targets);
}

std::vector<std::byte> Placement::record() const {
  const RecordHead head{id_, start_, targets_};
  std::vector<std::byte> out(sizeof head);
  std::memcpy(out.data(), &head, sizeof head);
  out.insert(out.end(), attribute_.begin(), attribute_.end());
  return out;
}

ObjectPart Placement::piece_in(std::uint32_t part, std::uint64_t offset) const {
  const layout::StripedPart& own = file_.parts[part];
  const layout::SubfileMap map{own.striping.unit, own.striping.targets};
  const auto place = map.place_of(offset);
  const base::Extent range = {offset, std::min(offset + place.length, own.range.end)};
  if (!ceph()) return {{part, place.file}, own.targets[place.file], place.offset, range};
  const std::uint64_t number = place.offset / file_.object_size * map.files + place.file;
  return {{0, number},
          static_cast<std::uint32_t>((start_ + number) % targets_),
          place.offset % file_.object_size,
          range};
}

ObjectPart Placement::piece_at(std::uint64_t offset) const {
  const auto last = static_cast<std::uint32_t>(file_.parts.size() - 1);
  std::uint32_t part = 0;
  while (part < last && offset >= file_.parts[part].range.end) ++part;
  return piece_in(part, offset);
}

std::vector<ObjectPart> Placement::pieces(base::Extent extent) const {
  std::vector<ObjectPart> out;
  while (!extent.empty()) {
    ObjectPart piece = piece_at(extent.begin);
    piece.range.end = std::min(piece.range.end, extent.end);
    if (piece.range.empty()) break;
    extent.begin = piece.range.end;
    out.push_back(piece);
  }
  return out;
}

std::vector<Placement::Object> Placement::objects(std::uint64_t size, std::uint64_t cut) const {
  std::vector<Object> out;
  for (std::uint32_t part = 0; part < file_.parts.size(); ++part) {
    const layout::StripedPart& own = file_.parts[part];
    const layout::SubfileMap map{own.striping.unit, own.striping.targets};
    const std::uint64_t rows =
        ceph() ? base::round_up(size, file_.object_size * map.files) / file_.object_size / map.files
               : 1;
    for (std::uint64_t number = 0; number < rows * map.files; ++number) {
      const auto stripe = static_cast<std::uint32_t>(number % map.files);
      const std::uint64_t before = number / map.files * file_.object_size,
                          all = map.part_size(stripe, std::min(cut, own.range.end));
      const std::uint64_t bytes =
          ceph() ? std::min(all - std::min(all, before), file_.object_size) : all;
      out.push_back(
          {{part, number},
           ceph() ? static_cast<std::uint32_t>((start_ + number) % targets_) : own.targets[stripe],
           bytes});
    }
  }
  return out;
}

std::vector<Placement::Object> Placement::objects(std::uint64_t size) const {
  return objects(size, size);
}

std::string Placement::file_name(const ObjectName& name) const {
  char text[64];
  std::snprintf(text, sizeof text, "%016llx.%u.%llu", static_cast<unsigned long long>(id_),
                name.part, static_cast<unsigned long long>(name.number));
  return text;
}

}  // namespace pario::lab
