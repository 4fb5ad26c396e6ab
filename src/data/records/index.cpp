#include "data/records/index.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "data/records/disk.hpp"
#include "data/records/formats.hpp"

namespace pario::records {
namespace {

constexpr char kMagic[8] = {'p', 'a', 'r', 'i', 'o', 'i', 'd', 'x'};
constexpr std::uint32_t kVersion = 1;

enum class SectionKind : std::uint32_t {
  offsets = 1,
  names = 2,
  name_bytes = 3,
  modes = 4,
  times = 5,
  sums = 6,
  identities = 7,
  runs = 8,
  firsts = 9
};
constexpr std::size_t kSections = 6;                // most
constexpr std::uint64_t kMostBuckets = 1ULL << 24;  // of a file; more show damage

struct Section {
  SectionKind kind;
  std::uint32_t reserved;
  std::uint64_t offset, size, checksum;  ///< offset: from the beginning of the index
};

struct Head {
  char magic[8];
  std::uint32_t version, kind;
  std::uint64_t count;
  std::uint64_t size;
  std::int64_t modified;
  std::uint64_t ends;
  std::uint32_t sections, reserved;
  Section section[kSections];
  std::uint64_t checksum;  ///< of all before
};
static_assert(sizeof(Section) == 32 && sizeof(Head) == 56 + 32 * kSections + 8);

Head head_of(std::span<const std::byte> image) {
  Head head;
  std::memcpy(&head, image.data(), sizeof head);
  return head;
}

/// A mapped range of a file.
struct Mapping {
  std::byte* pages = nullptr;
  std::uint64_t length = 0;
  ~Mapping() { ::munmap(pages, length); }
};

template <class T>
void append(std::vector<std::byte>& out, const T& value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

/// Adds a section. `body`: the whole file so far, with space for the head.
void add_section(Head& head, std::vector<std::byte>& body, SectionKind kind,
                 std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  body.resize(base::round_up(body.size(), 8));
  head.section[head.sections++] = {kind, 0, body.size(), bytes.size(),
                                   base::xxh64(bytes.data(), bytes.size())};
  body.insert(body.end(), bytes.begin(), bytes.end());
}

}  // namespace

base::Error Index::damage_error(const char* what) const {
  return {.number = EINVAL, .operation = "open index", .path = path_, .detail = what};
}

/// Reads an index that cannot be mapped.
base::Result<Index> Index::read_object(const Disk& object, base::Extent where) {
  std::vector<std::byte> image(where.length());
  const base::Result<std::uint64_t> got = object.read(where.begin, image);
  return got.ok() ? read(std::move(image), object.path()) : base::Result<Index>(got.error());
}

base::Result<Index> Index::open(const std::string& path, base::Extent where) {
  base::Result<Disk> file = Disk::open(path, O_RDONLY, Caching::page_cache);
  if (!file.ok()) return file.error();
  const base::Result<FileFacts> facts = file->facts();
  if (!facts.ok()) return facts.error();
  if (where.empty()) where = {0, facts->size};
  const std::uint64_t first = base::round_down(where.begin, kAlignment), length = where.end - first;
  if (where.length() < sizeof(Head) || where.end > facts->size)
    return base::Error{.number = EINVAL,
                       .operation = "open index",
                       .path = path,
                       .detail = "too short for an index of records"};
  if (file->remote()) return read_object(*file, where);
  void* pages =
      ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file->number(), static_cast<off_t>(first));
  if (pages == MAP_FAILED) return file->error("mmap", where);
  auto mapping = std::make_shared<Mapping>();
  mapping->pages = static_cast<std::byte*>(pages);
  mapping->length = length;
  return parse({mapping->pages + (where.begin - first), where.length()}, mapping, path);
}

base::Result<Index> Index::read(std::vector<std::byte> image, const std::string& path) {
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(image));
  return parse(*owner, owner, path);
}

base::Result<Index> Index::parse(std::span<const std::byte> image,
                                 std::shared_ptr<const void> owner, const std::string& path) {
  Index index;
  index.owner_ = std::move(owner);
  index.image_ = image;
  index.path_ = path;
  if (image.size() < sizeof(Head)) return index.damage_error("too short for an index of records");
  const Head head = head_of(image);
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0)
    return index.damage_error("not an index of records");
  if (head.version != kVersion) return index.damage_error("written by a later version of pario");
  if (head.checksum != base::xxh64(&head, offsetof(Head, checksum)) || head.sections > kSections)
    return index.damage_error("its head is damaged; make it anew with pario records index");
  index.kind_ = static_cast<Kind>(head.kind);
  index.recorded_ = head.count;
  index.fingerprint_ = {head.size, head.modified, head.ends};
  if (base::Status status = index.take_sections(); !status) return status.error();
  return index;
}

base::Status Index::take_sections() {
  const Head head = head_of(image_);
  if (recorded_ >= kLargestNumber) return damage_error("too many records");
  for (std::size_t i = 0; i < head.sections; ++i)
    if (base::Status status = take_section(i); !status) return status;
  if (offsets_.count() == 0) return damage_error("it has no offsets of records");
  if (format_of(kind_).grouped && !has_groups()) return damage_error("it has no records of groups");
  end_ = offsets_.at(count());
  return end_ < kLargestNumber ? base::Status() : damage_error("offsets are damaged");
}

base::Status Index::take_section(std::size_t number) {
  const Section section = head_of(image_).section[number];
  if (section.offset > image_.size() || section.size > image_.size() - section.offset)
    return damage_error("it was cut off");
  const auto bytes = image_.subspan(section.offset, section.size);
  const auto holds = [&](std::uint64_t size) { return bytes.size() / size >= recorded_; };
  switch (section.kind) {
    case SectionKind::offsets:
      return take_column(offsets_, bytes, recorded_ + 1, "offsets are damaged");
    case SectionKind::names:
      return take_column(names_, bytes, recorded_ + 1, "names are damaged");
    case SectionKind::name_bytes:
      name_bytes_ = bytes;
      break;
    case SectionKind::modes:
      modes_ = holds(4) ? bytes : std::span<const std::byte>{};
      break;
    case SectionKind::times:
      times_ = holds(8) ? bytes : std::span<const std::byte>{};
      break;
    case SectionKind::sums:
      sums_ = holds(4) ? bytes : std::span<const std::byte>{};
      break;
    case SectionKind::identities:
      return take_column(identities_, bytes, recorded_, "identities are damaged");
    case SectionKind::firsts:
      return take_column(firsts_, bytes, recorded_ + 1, "groups are damaged");
    case SectionKind::runs:
      return take_runs(bytes) ? base::Status() : damage_error("runs of buckets are damaged");
  }
  return {};
}

base::Status Index::take_column(Column& out, std::span<const std::byte> bytes, std::uint64_t count,
                                const char* damage) {
  if (!valid_column(bytes, count)) return damage_error(damage);
  out = Column(bytes, count);
  return {};
}

/// Every record is in a run, every run in a bucket.
bool Index::take_runs(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(Bucketing) || identities_.count() != recorded_) return false;
  bucketing_ = element<Bucketing>(bytes, 0);
  runs_ = bytes.subspan(sizeof(Bucketing));
  std::uint64_t begin = 0;
  for (std::uint64_t i = 0; i < runs(); ++i) {
    const BucketRun one = run(i);
    if (one.first < begin || (i == 0 && one.first != 0) || one.bucket >= bucketing_->buckets)
      return false;
    begin = one.first;
  }
  return begin <= recorded_ && bucketing_->buckets <= kMostBuckets &&
         (recorded_ == 0) == (runs() == 0);
}

std::string_view Index::name(std::uint64_t record) const {
  if (!has_names()) return {};
  const std::uint64_t begin = std::min<std::uint64_t>(names_.at(record), name_bytes_.size());
  const std::uint64_t end =
      std::clamp<std::uint64_t>(names_.at(record + 1), begin, name_bytes_.size());
  return {reinterpret_cast<const char*>(name_bytes_.data()) + begin, end - begin};
}

base::Status Index::verify_section(std::size_t number) const {
  const Section section = head_of(image_).section[number];
  if (base::xxh64(image_.data() + section.offset, section.size) == section.checksum) return {};
  return damage_error(
      kind_ == Kind::packed
          ? "its body is damaged, a checksum is wrong; it can be read without verification"
          : "its body is damaged, a checksum is wrong; make it anew with pario records index");
}

base::Status Index::verify_sections(bool by_record) const {
  const Head head = head_of(image_);
  for (std::size_t i = 0; i < head.sections; ++i) {
    const SectionKind kind = head.section[i].kind;
    if (kind == SectionKind::sums || (by_record && kind == SectionKind::offsets)) continue;
    if (base::Status status = verify_section(i); !status) return status;
  }
  return {};
}

base::Status Index::verify() const {
  if (base::Status status = verify_sections(); !status) return status;
  if (has_groups() && (firsts_.at(0) != 0 || firsts_.at(count()) >= kLargestNumber))
    return damage_error(
        "its body is damaged, its groups have not the records from the first one on");
  for (std::uint64_t record = 0; record < count(); ++record)
    if (offsets_.at(record) > offsets_.at(record + 1) ||
        (has_groups() && firsts_.at(record) > firsts_.at(record + 1)))
      return damage_error("its body is damaged, a record ends before it begins");
  return {};
}

void IndexBuilder::name(std::string_view name, std::uint32_t mode, std::int64_t modified) {
  names_.add(name_bytes_.size());
  const auto* bytes = reinterpret_cast<const std::byte*>(name.data());
  name_bytes_.insert(name_bytes_.end(), bytes, bytes + name.size());
  append(modes_, mode);
  append(times_, modified);
}

void IndexBuilder::sum(std::uint32_t sum) { append(sums_, sum); }

void IndexBuilder::bucketing(const Bucketing& bucketing) { append(runs_, bucketing); }

void IndexBuilder::run(std::uint64_t bucket) { append(runs_, BucketRun{count(), bucket}); }

std::vector<std::uint64_t> IndexBuilder::take_begins() {
  const std::uint64_t count = offsets_.count();
  const std::vector<std::byte> column = offsets_.finish();
  std::vector<std::uint64_t> taken(1 + (column.size() + 7) / 8);
  taken[0] = count;
  std::memcpy(taken.data() + 1, column.data(), column.size());
  return taken;
}

void IndexBuilder::append_begins(const std::vector<std::uint64_t>& taken) {
  const Column column(std::as_bytes(std::span(taken).subspan(1)), taken[0]);
  for (std::uint64_t record = 0; record < taken[0]; ++record) begin(column.at(record));
}

std::uint64_t IndexBuilder::bytes() const {
  return offsets_.bytes() + names_.bytes() + identities_.bytes() + name_bytes_.size() +
         modes_.size() + times_.size() + sums_.size() + runs_.size();
}

void IndexBuilder::expect_bucketed(std::uint64_t records, std::uint64_t bytes) {
  offsets_.expect(records, bytes / 2);
  identities_.expect(records, bytes);
}

std::vector<std::byte> IndexBuilder::finish(Kind kind, std::uint64_t end,
                                            const Fingerprint& fingerprint) {
  Head head{};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  head.version = kVersion;
  head.kind = static_cast<std::uint32_t>(kind);
  head.count = offsets_.count();
  head.size = fingerprint.size;
  head.modified = fingerprint.modified;
  head.ends = fingerprint.ends;
  offsets_.add(end);
  std::vector<std::byte> body;
  body.reserve(sizeof head + bytes() + 2 * kNumbersPerBlock * sizeof(std::uint64_t) +
               kSections * 16);
  body.resize(sizeof head);
  add_section(head, body, SectionKind::offsets, offsets_.finish());
  if (!runs_.empty()) {
    add_section(head, body, SectionKind::identities, identities_.finish());
    add_section(head, body, SectionKind::runs, runs_);
  } else if (names_.count() != 0) {
    names_.add(name_bytes_.size());
    add_section(head, body, SectionKind::names, names_.finish());
    add_section(head, body, SectionKind::name_bytes, name_bytes_);
    add_section(head, body, SectionKind::modes, modes_);
    add_section(head, body, SectionKind::times, times_);
  } else if (firsts_.count() != 0) {
    add_section(head, body, SectionKind::firsts, firsts_.finish());
  }
  add_section(head, body, SectionKind::sums, sums_);
  head.checksum = base::xxh64(&head, offsetof(Head, checksum));
  std::memcpy(body.data(), &head, sizeof head);
  *this = {};
  return body;
}

}  // namespace pario::records
