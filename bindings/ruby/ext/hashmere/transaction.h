/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the files of transactions and batches share. */
#ifndef HASHMERE_RUBY_TRANSACTION_H
#define HASHMERE_RUBY_TRANSACTION_H

#include "binding.h"
#include <hashmere_transaction.h>

void init_write_batch(void);

#endif
