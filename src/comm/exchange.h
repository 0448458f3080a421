// The collectives, made of messages from each rank to each other rank. All backends share them.
//
// Direct     Every collective is one exchange of messages between all ranks (two for sums of long
//            vectors). A rank that waits therefore waits for the rank that is late, not for one
//            that waits itself, and can name it. The bytes on the wire are the least possible, as
//            with a ring, and the time is that of one message; a tree would be faster from about
//            16 ranks on.
// Sums       ReduceScatterSum is an all-to-all and an addition in the order of ranks. AllReduceSum
//            gathers and adds everything on each rank if little is to be gathered; otherwise it is
//            a reduce-scatter and an all-gather. Both add the same numbers in the same order.
#pragma once

#include <memory>

#include "src/comm/communicator.h"
#include "src/comm/transport.h"

namespace latte {

// The world: all ranks of the transport.
std::unique_ptr<Communicator> MakeWorld(std::unique_ptr<Transport> transport,
                                        const CommOptions& options);

}  // namespace latte
