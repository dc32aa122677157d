/** Rolling migrations from the peers, with the peers themselves, as the documentation describes them. */
@NullMarked
package dev.pglock.migration;

import org.jspecify.annotations.NullMarked;
