// The collectives, made of messages from each rank to each other rank. All backends share them.
//
// Direct     Every collective is one exchange of messages between all ranks (two for sums of long
//            vectors). A waiting rank therefore waits for the late rank itself and can name it, not
//            for another waiting rank. The number of bytes is the minimum, as with a ring, and the
//            time is the time of one message; a tree would be faster from about 16 ranks.
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
