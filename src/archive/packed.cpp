#include "archive/packed.hpp"

#include <cerrno>
#include <cstring>
#include <span>

namespace pario::archive {
namespace {

base::Error report_damage(const std::string& path, const char* what) {
  return {.number = EIO, .operation = "read", .path = path, .detail = what};
}

/// The pieces of a file behind their map, with its holes.
base::Result<std::string> with_holes(std::string_view stored, const Row& row, const std::string& path) {
  std::vector<base::Extent> data;
  const std::size_t map = parse_map(stored, data);
  if (map == 0) return report_damage(path, "a map of holes that is none");
  stored.remove_prefix(map);
  std::string out(row.size, '\0');
  for (const base::Extent& piece : data) {
    if (piece.end > out.size() || piece.length() > stored.size()) return report_damage(path, "a map of holes that does not fit");
    std::memcpy(out.data() + piece.begin, stored.data(), piece.length());
    stored.remove_prefix(piece.length());
  }
  return out;
}

}  // namespace

base::Result<Archive> Archive::open(const std::string& directory) {
  auto index = Index::open(directory + "/" + kIndex);
  return index.ok() ? Archive(directory, std::move(*index)) : base::Result<Archive>(index.error());
}

base::Result<Shard*> Archive::shard(std::uint32_t number) {
  auto& shards = state_->shards;
  if (number >= index_.shards()) return report_damage(path_ + "/" + kIndex, "it names a shard that is not there");
  shards.resize(index_.shards());
  if (!shards[number]) {
    auto opened = Shard::open(shard_path(number));
    if (!opened.ok()) return opened.error();
    shards[number] = std::move(*opened);
  }
  return shards[number].get();
}

base::Result<std::string> Archive::stored(const Row& row, base::Extent part) {
  const std::scoped_lock lock(state_->mutex);
  const auto from = shard(row.shard);
  if (!from.ok()) return from.error();
  if (!row.is_within((*from)->size())) return (*from)->damaged("the index names bytes behind its end");
  std::string out(part.length(), '\0');
  const base::Extent where = {row.offset + part.begin, row.offset + part.end};
  base::Status status = (*from)->read(where, reinterpret_cast<std::byte*>(out.data()));
  return status ? base::Result<std::string>(std::move(out)) : status.error();
}

base::Result<std::string> Archive::checked(std::size_t member, Header& header) {
  const Row& row = index_.row(member);
  auto text = stored(row, {0, row.header + row.stored});
  if (!text.ok()) return text;
  const bool same = parse(*text, header) == row.header && header.name == index_.name(member) && header.type == row.type;
  if (!same || header.stored != row.stored || header.size != row.size)
    return report_damage(shard_path(row.shard), "a member that is not what the index says");
  text->erase(0, row.header);
  return text;
}

base::Result<std::string> Archive::read(std::size_t member) {
  Header header;
  auto text = checked(member, header);
  if (text.ok() && header.type == Type::hard_link) {
    const auto first = index_.find(header.target);
    if (!first || index_.row(*first).type == Type::hard_link)
      return report_damage(shard_path(index_.row(member).shard), "a hard link to nothing");
    member = *first;
    header = {};
    text = checked(member, header);
  }
  return text.ok() && header.sparse ? with_holes(*text, index_.row(member), shard_path(index_.row(member).shard)) : text;
}

}  // namespace pario::archive
