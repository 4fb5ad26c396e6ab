// Module lab: a file system (FUSE) that stripes files over directories. Each directory has the
// modelled speed of a target of a parallel file system; programs read and set stripes through the
// interfaces of Lustre or Ceph. An executable of its own, `pario-lab`, built where libfuse3 exists.
// docs/lab.md describes the model.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "instruments/lab/clock.hpp"
#include "instruments/lab/file.hpp"
#include "instruments/lab/metadata.hpp"
#include "instruments/lab/placement.hpp"
#include "instruments/lab/store.hpp"
#include "instruments/lab/targets.hpp"

namespace pario::lab {

/// The unit that counts as one client; a client's writes take object locks over from others.
enum class ClientKind : std::uint8_t { network, process };

/// Returns the client of a calling thread; 0: unknown.
Client client_of(ClientKind kind, pid_t thread);

struct Settings {
  std::uint32_t targets = 8;
  Speed speed = {};
  Duration metadata = 0;  ///< time of each request about names
  Personality personality = Personality::lustre;
  ClientKind client = ClientKind::network;
  bool cache = false;  ///< the kernel keeps pages of files that were read
};

/// A mounted lab.
struct Lab {
  Lab(const Settings& chosen, Store opened)
      : settings(chosen),
        store(std::move(opened)),
        targets(chosen.targets, chosen.speed),
        metadata(chosen.metadata),
        files(store, targets) {}

  Settings settings;
  Store store;
  Targets targets;
  Metadata metadata;
  Files files;
};

/// Settings and counts as JSON.
std::string status_of(const Lab& lab);

// ---- attributes (attributes.cpp); each returns 0, a size or -errno

/// Attributes by which a lab reports and accepts settings; `none`: an ordinary attribute of the
/// file.
enum class AttributeKind : std::uint8_t { none, stripes, status };
AttributeKind classify_attribute(const Lab& lab, const char* name, bool directory);
int set_stripes(Lab& lab, const std::string& path, Client client, std::span<const std::byte> value);
/// Returns the stripes of a file, or of new files in a directory. For the root also the defaults,
/// if no stripes were set.
std::optional<std::vector<std::byte>> stripes_of(Lab& lab, const std::string& path, bool root);
/// Assigns a file without stripes those of its directory, or of the root.
int assign_stripes(Lab& lab, const std::string& path, Client client, LabFile& file);
/// Copies the stripes of the directory above to a new directory of Lustre.
void inherit_stripes(const Lab& lab, const std::string& path);

}  // namespace pario::lab
