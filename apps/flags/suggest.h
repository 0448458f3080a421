// Suggestions of commands.
#pragma once

#include "src/base/fields/suggest.h"
