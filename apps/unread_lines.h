// Handles a standard error that no process reads.
#pragma once

namespace latte {

// From now on, what this process and its children write to standard error is dropped if it is a
// pipe that is full. Without that, a write waits until the reader goes on, perhaps forever. Does
// nothing if standard error is no pipe, or one of another user that may not be opened.
void DropUnreadLines();

}  // namespace latte
