// Kept handles: where settings say `handles`, close() leaves the descriptor as it is for a while, and open() of the same name with the same
// flags gives it back. The stand-ins are above those of buffered files, which take a descriptor that rests for an open one.
//
// With `lazyclose` what is closed rests although its bytes are not written yet: streams keep them in their own buffers (kept_behind.hpp),
// descriptors in those of room stream. Who looks at the file in this process finds them in it.
//
// What a program sees is what it would see without: a descriptor that rests is closed to it, the file is as its bytes say, and the
// descriptor that comes back begins at the start. Other processes may have put another file in its place up to kTrustedNs ago.
#pragma once

#include "preload/symbols.hpp"

namespace pario::preload::kept {

/// What stands in for a symbol whose real function is `function`: that itself where no handles are kept.
void* stand_in(Symbol symbol, void* function);

/// Closes all that rest: other processes may get copies of descriptors, or there are too many.
bool give_up_all();

/// At the end of the program: nothing rests any more, and nothing will.
void end();

}  // namespace pario::preload::kept
