// What may be included here: row_passes.h says it.
#include "src/engine/sampling/row_passes-inl.h"

namespace latte {

const RowPasses kRowPassesAvx2 = RowPass::kAll;

}  // namespace latte
