#include "observe/preload/images.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>
#include <string_view>

#include "core/base/base.hpp"
#include "observe/preload/tracer.hpp"

namespace pario::preload {
namespace {

constexpr std::size_t kLongestProgram = 500;
constexpr const char* kOtherEnvironment =
    "in an environment without pario's LD_PRELOAD and PARIO_TRACE_DIR";
constexpr const char* kStatic = "though it is statically linked";
constexpr const char* kPrivileged = "though it is set-user-ID or set-group-ID";

bool preloads_pario(char* const* environment) {
  bool library = false, directory = false;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view variable(*environment);
    library |= variable.starts_with("LD_PRELOAD=") && variable.find("libpario.so") != variable.npos;
    directory |= variable.starts_with("PARIO_TRACE_DIR=");
  }
  return library && directory;
}

bool has_interpreter(const char* head, std::size_t size) {
  Elf64_Ehdr header;
  std::memcpy(&header, head, sizeof header);
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    const std::size_t at = header.e_phoff + i * header.e_phentsize;
    Elf64_Phdr segment;
    if (at > size || size - at < sizeof segment) return true;  // not known
    std::memcpy(&segment, head + at, sizeof segment);
    if (segment.p_type == PT_INTERP) return true;
  }
  return false;
}

/// True for the dynamic loader: it has no interpreter, but preloads libraries.
bool is_loader(std::string_view path) { return path.substr(path.rfind('/') + 1).starts_with("ld"); }

bool is_static(const char* path) {
  char head[4096];
  const long size = trace::read_own_file(path, head, sizeof head);
  const bool is_program = size >= static_cast<long>(sizeof(Elf64_Ehdr)) &&
                          std::memcmp(head, ELFMAG, SELFMAG) == 0 && head[EI_CLASS] == ELFCLASS64;
  return is_program && !has_interpreter(head, static_cast<std::size_t>(size)) && !is_loader(path);
}

/// True for a program with other privileges: the loader then ignores LD_PRELOAD.
bool is_privileged(const struct stat& status) {
  const auto is_foreign = [](long own, auto other) { return own != static_cast<long>(other); };
  return ((status.st_mode & S_ISUID) != 0 &&
          is_foreign(base::system_call(SYS_getuid), status.st_uid)) ||
         ((status.st_mode & S_ISGID) != 0 &&
          is_foreign(base::system_call(SYS_getgid), status.st_gid));
}

/// Returns the reason why a program will not be traced; null: it will be, or it cannot be executed.
const char* find_reason(const char* program, char* const* environment) {
  const bool is_path = std::strchr(program, '/') != nullptr;
  struct stat status{};
  if (is_path && (base::status_of(program, status) != 0 || (status.st_mode & 0111) == 0 ||
                  !S_ISREG(status.st_mode)))
    return nullptr;
  if (!preloads_pario(environment)) return kOtherEnvironment;
  if (!is_path) return nullptr;
  if (is_privileged(status)) return kPrivileged;
  return is_static(program) ? kStatic : nullptr;
}

}  // namespace

void note_unseen(const char* program, char* const* environment) {
  static constinit std::atomic<bool> noted{false};
  if (state.load(std::memory_order_acquire) != State::on || program == nullptr ||
      noted.load(std::memory_order_relaxed))
    return;
  const base::SavedErrno saved;
  const char* reason = find_reason(program, environment);
  if (reason == nullptr || noted.exchange(true, std::memory_order_relaxed)) return;
  base::Text<6 * kLongestProgram + 256> text;
  base::Json json(text);
  json.begin_object().member("note", "unfollowed");
  json.member("program", std::string_view(program).substr(0, kLongestProgram));
  trace::note(json.member("reason", reason).end_object().view());
}

}  // namespace pario::preload
