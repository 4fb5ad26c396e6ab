#include "data/records/output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

namespace pario::records {
namespace {

/// Removes the stale temporary files of these outputs.
void remove_stale_parts_of(const std::vector<std::string>& names) {
  std::map<std::string, std::set<std::string>> outputs;  // by directory
  for (const std::string& name : names)
    outputs[file::directory_of(name)].insert(base_name_of(name));
  for (const auto& [directory, files] : outputs)
    file::remove_stale_parts(directory, [&](std::string_view name) {
      return std::ranges::any_of(
          files, [name](const std::string& output) { return file::is_own_part(name, output); });
    });
}

/// Checks, before the work begins, that a file can have this name.
base::Status check_name(const std::string& name) {
  struct stat facts{};
  const bool exists = ::lstat(name.c_str(), &facts) == 0;
  if (exists ? S_ISDIR(facts.st_mode) : errno == ENAMETOOLONG)
    return base::Error{.number = exists ? EISDIR : ENAMETOOLONG, .operation = "open", .path = name};
  return {};
}

}  // namespace

base::Result<std::unique_ptr<Output>> Output::make(const std::vector<std::string>& names,
                                                   std::uint64_t expected, Caching caching) {
  remove_stale_parts_of(names);
  std::unique_ptr<Output> output(new Output);
  for (const std::string& name : names)
    if (base::Status status = output->add(name, caching); !status) return status.error();
  if (base::Status status = output->preallocate(expected); !status) return status.error();
  output->begins(0, 0);
  return output;
}

base::Result<std::unique_ptr<Output>> Output::make_together(const Ranks& ranks,
                                                            const std::vector<std::string>& names,
                                                            std::uint64_t expected, Caching caching,
                                                            std::uint64_t number) {
  if (ranks.alone()) return make(names, expected, caching);
  base::Result<std::unique_ptr<Output>> output = std::unique_ptr<Output>();
  for (const bool creates : {true, false}) {
    if (ranks.first() == creates) output = make_shared(names, expected, caching, creates, number);
    if (base::Status status = ranks.together(output.status()); !status) return status.error();
  }
  return output;
}

base::Result<std::unique_ptr<Output>> Output::make_shared(const std::vector<std::string>& names,
                                                          std::uint64_t expected, Caching caching,
                                                          bool first, std::uint64_t number) {
  if (first) remove_stale_parts_of(names);
  std::unique_ptr<Output> output(new Output);
  output->shared_ = true;
  for (const std::string& name : names)
    if (base::Status status = output->add_shared(name, caching, first, number); !status)
      return status.error();
  if (base::Status status = first ? output->preallocate(expected) : base::Status(); !status)
    return status.error();
  output->begins(0, 0);
  return output;
}

base::Status Output::preallocate(std::uint64_t expected) {
  return shards_.size() == 1 ? shards_[0].file.preallocate(expected) : base::Status();
}

base::Status Output::add(const std::string& name, Caching caching) {
  if (base::Status status = check_name(name); !status) return status;
  auto publication =
      file::Publication::of_file(name, {.flags = open_flag(caching), .nameless = true});
  if (!publication.ok()) return publication.error();
  base::Result<Disk> file = Disk::of(*publication, name);
  if (!file.ok()) return file.error();
  shards_.push_back(
      {.name = name, .file = std::move(*file), .publication = std::move(*publication)});
  return {};
}

base::Status Output::add_shared(const std::string& name, Caching caching, bool first,
                                std::uint64_t number) {
  const std::string part = file::part_path(name, number);
  std::optional<file::Publication> publication;
  if (first) {
    if (base::Status status = check_name(name); !status) return status;
    auto made = file::Publication::of_file(name, {.number = number});
    if (!made.ok()) return made.error();
    publication.emplace(std::move(*made));
  }
  base::Result<Disk> file = Disk::open(part, O_RDWR, caching);
  if (!file.ok()) return file.error();
  base::Result<Disk> parts = Disk::open(part, O_RDWR, Caching::page_cache);
  if (!parts.ok()) return parts.error();
  shards_.push_back({.name = name,
                     .file = std::move(*file),
                     .publication = std::move(publication),
                     .parts = std::move(*parts)});
  return {};
}

void Output::begins(std::uint32_t shard, std::uint64_t offset) {
  const std::scoped_lock lock(mutex_);
  shards_[shard].begin = offset;
  shards_[shard].is_known = true;
  told_.notify_all();
}

base::Result<std::uint64_t> Output::begin_of(std::uint32_t shard, const Meter& meter) {
  std::unique_lock lock(mutex_);
  while (!shards_[shard].is_known) {
    if (meter.is_stopped())
      return base::Error{.number = ECANCELED,
                         .operation = "shuffle",
                         .path = shards_[shard].name,
                         .detail = "stopped"};
    told_.wait_for(lock, std::chrono::milliseconds(100));
  }
  return shards_[shard].begin;
}

std::optional<std::uint64_t> Output::known_begin(std::uint32_t shard) {
  const std::scoped_lock lock(mutex_);
  return shards_[shard].is_known ? std::optional(shards_[shard].begin) : std::nullopt;
}

base::Status Output::flush() const {
  for (const Shard& shard : shards_)
    if (::fsync(shard.file.number()) != 0) return shard.file.error("fsync");
  return {};
}

base::Status Output::write(std::uint32_t shard, std::uint64_t offset,
                           std::span<const std::byte> data) {
  const std::uint64_t first =
      std::min<std::uint64_t>(base::round_up(offset, kAlignment) - offset, data.size());
  const std::uint64_t whole = base::round_down(data.size() - first, kAlignment);
  if (base::Status status = write_part(shard, offset, data.first(first)); !status) return status;
  if (whole != 0)
    if (base::Status status = shards_[shard].file.write(offset + first, data.subspan(first, whole));
        !status)
      return status;
  return write_part(shard, offset + first + whole, data.subspan(first + whole));
}

/// Writes a part of a page: at once to a shared output, else when the page is full.
base::Status Output::write_part(std::uint32_t shard, std::uint64_t offset,
                                std::span<const std::byte> data) {
  if (data.empty()) return {};
  if (shared_)
    return shards_[shard].parts.write(offset, data);  // other ranks write the rest of the page
  const std::uint64_t begin = base::round_down(offset, kAlignment);
  const std::scoped_lock lock(mutex_);
  Page& page = pages_[{shard, begin}];
  if (page.memory.size() == 0) {
    base::Result<Buffer> made = Buffer::make(kAlignment);
    if (!made.ok()) return made.error();
    page.memory = std::move(*made);
  }
  std::memcpy(page.memory.data() + (offset - begin), data.data(), data.size());
  page.filled += data.size();
  if (page.filled < kAlignment) return {};
  base::Status status = shards_[shard].file.write(begin, page.memory.span());
  pages_.erase({shard, begin});
  return status;
}

base::Status Output::complete(std::uint64_t size, std::uint64_t trailer) {
  const std::vector<std::byte> zeros(trailer);
  for (std::uint32_t i = 0; i < shards(); ++i) {
    Shard& shard = shards_[i];
    const std::uint64_t bytes = (i + 1 < shards() ? shards_[i + 1].begin : size) - shard.begin;
    for (std::uint64_t done = 0; done < trailer;) {  // page by page: zeros are not aligned
      const std::uint64_t part = std::min(trailer - done, kAlignment - (bytes + done) % kAlignment);
      if (base::Status status = write_part(i, bytes + done, std::span(zeros).first(part)); !status)
        return status;
      done += part;
    }
    if (base::Status status = close(shard, bytes + trailer); !status) return status;
  }
  return {};
}

base::Status Output::publish() {
  for (Shard& shard : shards_) {
    if (!shard.publication) continue;  // the first rank publishes it
    base::Status status = shard.publication->publish(file::Publication::Existing::replace);
    if (!status) return status;
  }
  return {};
}

/// Writes incomplete pages, and sets the size of the file.
base::Status Output::close(Shard& shard, std::uint64_t size) {
  const auto number = static_cast<std::uint32_t>(&shard - shards_.data());
  for (auto page = pages_.lower_bound({number, 0});
       page != pages_.end() && page->first.first == number; page = pages_.erase(page))
    if (base::Status status = shard.file.write(page->first.second, page->second.memory.span());
        !status)
      return status;
  if (::ftruncate(shard.file.number(), static_cast<off_t>(size)) != 0)
    return shard.file.error("ftruncate", {0, size});
  if (::fsync(shard.file.number()) != 0) return shard.file.error("fsync");
  return {};
}

base::Result<std::unique_ptr<Output>> write_aside(const std::string& path,
                                                  std::span<const std::byte> bytes) {
  base::Result<std::unique_ptr<Output>> output =
      Output::make({path}, bytes.size(), Caching::page_cache);
  base::Status status = output.status();
  if (status) status = (*output)->write(0, 0, bytes);
  if (status) status = (*output)->complete(bytes.size(), 0);
  return status ? std::move(output) : status.error();
}

base::Status write_whole(const std::string& path, std::span<const std::byte> bytes) {
  if (file::is_url(path)) return file::write_object(path, bytes);
  const base::Result<std::unique_ptr<Output>> output = write_aside(path, bytes);
  return output.ok() ? (*output)->publish() : output.status();
}

base::Result<OutputCursor> OutputCursor::make(Output& output, std::uint64_t buffer) {
  base::Result<Buffer> memory = Buffer::make(buffer);
  return memory.ok() ? base::Result<OutputCursor>(OutputCursor(output, std::move(*memory)))
                     : memory.error();
}

base::Status OutputCursor::seek(std::uint32_t shard, std::uint64_t offset) {
  if (base::Status status = flush(); !status) return status;
  shard_ = shard;
  base_ = base::round_down(offset, kAlignment);
  begin_ = end_ = offset - base_;
  return {};
}

base::Status OutputCursor::put(std::span<const std::byte> data) {
  while (!data.empty()) {
    if (end_ == memory_.size()) {
      const std::uint64_t next = base_ + end_;
      if (base::Status status = seek(shard_, next); !status) return status;
    }
    const std::uint64_t part = std::min<std::uint64_t>(data.size(), memory_.size() - end_);
    std::memcpy(memory_.data() + end_, data.data(), part);
    end_ += part;
    data = data.subspan(part);
  }
  return {};
}

base::Status OutputCursor::flush() {
  if (begin_ == end_) return {};
  base::Status status = output_->write(
      shard_, base_ + begin_, std::span<const std::byte>(memory_.data() + begin_, end_ - begin_));
  begin_ = end_;
  return status;
}

}  // namespace pario::records
