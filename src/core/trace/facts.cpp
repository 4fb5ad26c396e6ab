#include "core/trace/facts.hpp"

#include <atomic>

#include "core/layout/layout.hpp"
#include "core/trace/state.hpp"

namespace pario::trace {
namespace {

constexpr std::size_t kLongestLayout = 64 << 10;  // the kernel's limit of an attribute

long attribute(const Target& target, const char* name, void* out, std::size_t size) {
  return target.descriptor >= 0
             ? base::system_call(SYS_fgetxattr, target.descriptor, name, out, size)
             : base::system_call(SYS_getxattr, target.path, name, out, size);
}

RawLayout read_layout(const Target& target, const char* name) {
  std::byte small[64];
  if (name == nullptr || attribute(target, name, small, 0) <= 0) return {};
  std::byte* memory = base::map_memory(kLongestLayout);
  if (memory == nullptr) return {};
  const long size = attribute(target, name, memory, kLongestLayout);
  if (size > 0) return {name, memory, static_cast<std::size_t>(size)};
  base::unmap(memory, kLongestLayout);
  return {};
}

constinit std::atomic<StatusReader> status_reader{nullptr};

int read_known_status(const Target& target, struct stat& status) {
  const StatusReader read = status_reader.load(std::memory_order_acquire);
  return target.descriptor >= 0 || read == nullptr ? -1 : read(target.path, status);
}

FileFacts ask(const Target& target) {
  struct stat status{};
  const int known = read_known_status(target, status);
  if (known > 0 || (known < 0 && target.status(status) != 0)) return {};
  FileFacts facts;
  facts.kind = status.st_mode & S_IFMT;
  facts.device = status.st_dev;
  facts.inode = status.st_ino;
  facts.block_size = static_cast<std::uint64_t>(status.st_blksize);
  facts.size = static_cast<std::uint64_t>(status.st_size);
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return facts;
  const FileSystem* system = state.filesystems.get(target, status.st_dev);
  if (system == nullptr) return facts;
  facts.filesystem = system->id;
  if (known < 0 && S_ISREG(status.st_mode))
    facts.layout = read_layout(target, system->layout_attribute);
  const layout::Striping striping = layout::read_striping({facts.layout.data, facts.layout.size});
  if (striping.unit != 0) facts.block_size = striping.unit;
  return facts;
}

void add_hex(base::TextBuffer& out, std::span<const std::byte> data) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (const std::byte byte : data)
    out.add(kDigits[std::to_integer<unsigned>(byte) >> 4])
        .add(kDigits[std::to_integer<unsigned>(byte) & 15]);
}

}  // namespace

void set_status_reader(StatusReader reader) {
  status_reader.store(reader, std::memory_order_release);
}

FileFacts facts_of(int descriptor) { return ask({descriptor, nullptr}); }

FileFacts facts_of(const char* path) { return ask({-1, path}); }

void write_layout_note(const Record& record, const RawLayout& layout) {
  if (layout.kind == nullptr) return;
  std::byte* memory = base::map_memory(kLongestNote);
  if (memory == nullptr) return bump(process().lost);
  base::TextBuffer text(reinterpret_cast<char*>(memory), kLongestNote);
  base::Json json(text);
  json.begin_object()
      .member("note", "layout")
      .member("record", record.row)
      .member("kind", layout.kind)
      .key("value");
  text.add('"');
  add_hex(text, {layout.data, layout.size});
  text.add('"');
  note(json.end_object().view());
  base::unmap(memory, kLongestNote);
}

void discard(const RawLayout& layout) {
  if (layout.data != nullptr) base::unmap(layout.data, kLongestLayout);
}

}  // namespace pario::trace
