// Room lab: a file system (FUSE) that keeps files striped over directories, each of which is as slow as a target of a parallel file system
// is told to be, and that is told and tells stripes as Lustre or Ceph does. An executable of its own, `pario-lab`; where libfuse3 is
// missing, it is not built. docs/lab.md describes what is modelled.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lab/clock.hpp"
#include "lab/file.hpp"
#include "lab/placement.hpp"
#include "lab/store.hpp"
#include "lab/targets.hpp"

namespace pario::lab {

/// What counts as one client, whose writes take the locks of objects from others.
enum class Who : std::uint8_t { network, process };

/// Of a thread that asks; 0: not known.
Client client_of(Who who, pid_t thread);

struct Settings {
  std::uint32_t targets = 8;
  Speed speed = {};
  Personality personality = Personality::lustre;
  Who who = Who::network;
  bool cache = false;  ///< the kernel keeps pages of files that were read
};

/// A mounted lab.
struct Lab {
  Lab(const Settings& chosen, Store opened)
      : settings(chosen), store(std::move(opened)), targets(chosen.targets, chosen.speed), files(store, targets) {}

  Settings settings;
  Store store;
  Targets targets;
  Files files;
};

/// Settings and counts as JSON.
std::string status_of(const Lab& lab);

// ---- attributes (attributes.cpp); each returns 0, a size or -errno

/// Attributes by which a lab tells, and is told, other things than a file keeps.
enum class Told : std::uint8_t { nothing, stripes, status };
Told told_by(const Lab& lab, const char* name, bool directory);
int set_stripes(Lab& lab, const std::string& path, Client client, std::span<const std::byte> value);
/// What the stripes of a file are, or of new files in a directory (of the root also those that nobody has said).
std::optional<std::vector<std::byte>> stripes_of(Lab& lab, const std::string& path, bool root);
/// Gives a file that has none the stripes that its directory says, or the root.
int settle_stripes(Lab& lab, const std::string& path, Client client, File& file);
/// Directories of Lustre begin with the stripes of the one above.
void inherit_stripes(const Lab& lab, const std::string& path);

}  // namespace pario::lab
