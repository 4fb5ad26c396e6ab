// The layers below the wrappers, from the top.
#include "layers/buffering/buffering.hpp"
#include "layers/caching/caching.hpp"
#include "layers/chain/chain.hpp"
#include "layers/handles/handles.hpp"
#include "layers/staging/staging.hpp"
#include "layers/striping/striping.hpp"
#include "layers/subfiles/subfiles.hpp"

namespace pario::chain {

constinit const std::array<Layer, kLayers> layers = {{
#define PARIO_LAYER(module) {module::is_active, module::treatment_of},
#include "layers/chain/layers.def"
#undef PARIO_LAYER
}};

}  // namespace pario::chain
