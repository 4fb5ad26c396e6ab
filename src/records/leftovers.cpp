#include "records/leftovers.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>

namespace pario::records {
namespace {

constexpr std::string_view kPart = ".pario-part.";       // a number follows
constexpr std::string_view kShared = ".pario-shuffle-";  // number, rank and output follow, with dots between them
constexpr std::size_t kNameDigits = 16;

std::string digits_of(std::uint64_t number) {
  std::string out(kNameDigits, '0');
  for (std::size_t i = kNameDigits; i-- > 0; number >>= 4) out[i] = "0123456789abcdef"[number & 15];
  return out;
}

bool is_number_of_this_host(std::string_view digits) {
  std::uint64_t number = 0;
  const char* const end = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return digits.size() == kNameDigits && end == digits.data() + kNameDigits && is_of_this_host(number);
}

}  // namespace

std::string aside_of(std::string_view output, std::uint64_t number) { return std::string(output) + std::string(kPart) + digits_of(number); }

std::string shared_name(std::uint64_t number, std::uint64_t rank, std::string_view output) {
  return std::string(kShared) + digits_of(number) + "." + std::to_string(rank) + "." + std::string(output);
}

std::string_view output_of_aside(std::string_view name) {
  const std::size_t part = name.rfind(kPart);
  const bool ours = part != name.npos && is_number_of_this_host(name.substr(part + kPart.size()));
  return ours ? name.substr(0, part) : std::string_view();
}

std::string_view output_of_shared(std::string_view name) {
  if (!name.starts_with(kShared) || !is_number_of_this_host(name.substr(kShared.size(), kNameDigits))) return {};
  const std::size_t rank = kShared.size() + kNameDigits, behind = name.find('.', rank + 1);
  return name.substr(rank).starts_with('.') && behind != name.npos ? name.substr(behind + 1) : std::string_view();
}

base::Result<Disk> open_held(const std::string& path, Caching caching) {
  for (;;) {
    const int made = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (made < 0) return base::Error{.number = errno, .operation = "open", .path = path};
    ::close(made);
    base::Result<Disk> file = Disk::open(path, O_RDWR, caching);
    struct stat facts{};
    if (file.ok()) hold(*file);
    const bool taken = file.ok() ? ::fstat(file->number(), &facts) == 0 && facts.st_nlink == 0 : file.error().number == ENOENT;
    if (!taken) return file;  // else for a leftover, before it was held
  }
}

void hold(const Disk& file) { ::flock(file.number(), LOCK_EX | LOCK_NB); }

void remove_leftovers(const std::string& directory, const std::function<bool(std::string_view)>& ours) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    if (!ours(at->path().filename().native())) continue;
    if (at->is_symlink(error)) ::unlink(at->path().c_str());  // nobody writes through one: what it points to stays
    const base::Result<Disk> file = Disk::open(at->path(), O_RDWR | O_NOFOLLOW, Caching::page_cache);
    if (file.ok() && ::flock(file->number(), LOCK_EX | LOCK_NB) == 0) ::unlink(at->path().c_str());
  }
}

}  // namespace pario::records
