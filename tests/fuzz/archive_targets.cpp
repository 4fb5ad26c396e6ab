// Archives of `pario pack`: headers of members, index, shards.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/base/base.hpp"
#include "data/archive/header.hpp"
#include "data/archive/packed.hpp"
#include "targets.hpp"

namespace pario::fuzz {
namespace {

constexpr std::size_t kMostMembers = 64;
constexpr std::uint64_t kLargestMember = 1 << 20;
constexpr std::size_t kIndexHead = 64, kIndexSum = 24;  // docs/move.md, The index

bool has_zero(const std::string& text) { return text.find('\0') != text.npos; }

/// Writes a parsed header and parses it again; the result must be the same.
void write_again(const archive::Header& header) {
  if (static_cast<char>(header.type) == 'x' || has_zero(header.name) || has_zero(header.target))
    return;
  archive::Header again;
  const std::string text = archive::text_of(header);
  require(text.size() % archive::kBlock == 0, "a header has whole blocks");
  require(archive::parse(text, again) == text.size(), "a header that was written is one");
  require(
      again.name == header.name && again.target == header.target && again.stored == header.stored,
      "a header keeps names and size");
  require(again.attributes == header.attributes, "a header keeps attributes");
}

/// Repairs the checksum of an index.
Bytes repair_archive_index(Input input) {
  Bytes image(input.begin(), input.end());
  if (image.size() < kIndexHead) return image;
  const auto members = number_at<std::uint64_t>(image, 8);
  const Input body = Input(image).subspan(kIndexHead);
  const std::uint64_t rows =
      std::min<std::uint64_t>(members, body.size() / sizeof(archive::Row)) * sizeof(archive::Row);
  put_number(image, kIndexSum,
             base::xxh64(as_text(body.subspan(rows)), base::xxh64(body.data(), rows)));
  return image;
}

void read_archive_index(Input input) {
  const MemoryFile file(input);
  const auto index = archive::Index::open(file.path());
  if (!index.ok()) return;
  static_cast<void>(index->verify());
  for (std::size_t i = 0; i < std::min(index->count(), kMostMembers); ++i) {
    const std::string_view name = index->name(i);
    require(name.size() <= input.size(), "a name is no longer than its index");
    if (const auto found = index->find(name))
      require(index->name(*found) == name, "a member that was found has the name");
    const archive::Row& row = index->row(i);
    if (row.is_within(1 << 20))
      require(row.place().end <= 1 << 20, "a member that is within a shard ends there");
  }
}

/// Returns a directory for the files of an archive, removed at the end of the process.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "pario-fuzz-XXXXXX").string();
    require(::mkdtemp(pattern.data()) != nullptr, "there is a temporary directory");
    path_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

  void write(const std::string& name, Input content) const {
    const int descriptor =
        ::open((path_ + "/" + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(base::write_all(descriptor, content.data(), content.size(), 0) >= 0,
            "a temporary file takes its bytes");
    ::close(descriptor);
  }

 private:
  std::string path_;
};

/// Makes a shard that holds this tar in one frame.
Bytes shard_of(Input tar) {
  archive::Compressor compressor(1);
  auto frame = compressor.frame(tar);
  require(frame.ok(), "zstd compresses");
  const archive::FrameSize size{static_cast<std::uint32_t>(frame->size()),
                                static_cast<std::uint32_t>(tar.size())};
  const Bytes table = archive::table_of({&size, 1});
  frame->insert(frame->end(), table.begin(), table.end());
  return *std::move(frame);
}

}  // namespace

void archive_header(Input input) {
  archive::Header header;
  const std::size_t length = archive::parse(as_text(input), header);
  require(length <= input.size() && length % archive::kBlock == 0,
          "a header lies within its bytes");
  if (length > 0) write_again(header);
  std::vector<base::Extent> data;
  const std::size_t map = archive::parse_map(as_text(input), data);
  require(map <= base::round_up(input.size(), archive::kBlock), "a map lies within its blocks");
  for (const base::Extent& piece : data)
    require(piece.begin < piece.end, "a piece of a map has bytes");
}

void archive_index(Input input) {
  read_archive_index(input);
  read_archive_index(repair_archive_index(input));
}

void archive_shard(Input input) {
  const MemoryFile file(input);
  auto shard = archive::Shard::open(file.path());
  if (!shard.ok()) return;
  for (std::size_t i = 0; i < std::min((*shard)->frames(), kMostMembers); ++i) {
    const std::uint64_t begin = (*shard)->frame(i).begin;
    if (begin == (*shard)->size()) return;
    const auto part = (*shard)->read_part(begin);
    if (!part.ok()) continue;
    require(part->bytes.size() == part->place.length(), "a part is as long as its place");
    require(part->place.begin <= begin && begin < part->place.end,
            "a part holds the byte asked for");
  }
}

/// Input: the size of the index (4 bytes), the index, the tar of its only shard.
void archive_members(Input input) {
  static const Folder folder;
  if (input.size() < 4) return;
  const Input rest = input.subspan(4);
  const std::size_t size = std::min<std::size_t>(number_at<std::uint32_t>(input, 0), rest.size());
  folder.write(archive::kIndex, repair_archive_index(rest.first(size)));
  folder.write(archive::shard_name(0), shard_of(rest.subspan(size)));
  auto archive = archive::Archive::open(folder.path());
  if (!archive.ok()) return;
  for (std::size_t i = 0; i < std::min(archive->index().count(), kMostMembers); ++i) {
    if (archive->index().row(i).size > kLargestMember)
      continue;  // the caller may ask for so much memory
    const auto content = archive->read(i);
    require(!content.ok() || content->empty() || content->size() == archive->index().row(i).size,
            "a member has the size of its row");
  }
}

}  // namespace pario::fuzz
