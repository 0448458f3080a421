// The struct behind latte_model.
#pragma once

#include <memory>

#include "latte/latte.h"

#include "src/embed/embedded_model.h"

struct latte_model {
  std::shared_ptr<const latte::EmbeddedModel> model;
};
