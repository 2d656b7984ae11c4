package ottla.pipelines;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.Seq;
import scala.collection.immutable.Map;

/**
 * Gives a snapshot of Delta the last batch of each writer, which it would have Spark rebuild the
 * table's state for.
 *
 * Delta keeps them in a lazy value, `SnapshotStateManager.transactions`: a field of Snapshot, and
 * one bit of another field that tells that it is known. Which bit it is differs from Delta to
 * Delta, so an object learns it from the snapshot of no table, DummySnapshot. One that cannot learn
 * it gives nothing.
 */
public final class KnownTransactions {
    private static final String SNAPSHOT = "org.apache.spark.sql.delta.Snapshot";
    private static final Class[] NO_CLASSES = new Class[0];
    private static final Object[] NO_OBJECTS = new Object[0];

    private final Field transactions;
    private final Field known;
    private final int bit;

    /** `empty` is a DummySnapshot, whose state takes no job of Spark. */
    public KnownTransactions(Object empty)
            throws ClassNotFoundException, IllegalAccessException, InvocationTargetException,
            NoSuchMethodException {
        Class kind = Class.forName(SNAPSHOT, true, empty.getClass().getClassLoader());
        call(empty, "setTransactions");
        Field value = null;
        Field bits = null;
        try {
            value = kind.getDeclaredField("transactions");
            bits = kind.getDeclaredField("bitmap$0");
        } catch (NoSuchFieldException another) {
            // Another Delta: it is left to compute the state.
            bits = null;
        }
        if (bits == null || bits.getType() != Integer.TYPE) {
            transactions = null;
            known = null;
            bit = 0;
            return;
        }
        value.setAccessible(true);
        bits.setAccessible(true);
        int before = bits.getInt(empty);
        call(empty, "transactions");
        int changed = bits.getInt(empty) ^ before;
        transactions = value;
        known = bits;
        bit = Integer.bitCount(changed) == 1 ? changed : 0;
    }

    /**
     * Give a snapshot what the checksum of its version says; tell whether it was given.
     *
     * It is not when there is no checksum, or when the last batch of the writer is another one
     * there: then it forgets what another query of this process may have given it, and Delta has the
     * state computed. -1: the writer has none, as in Delta.
     */
    public boolean give(Object snapshot, String writer, long batch)
            throws IllegalAccessException, InvocationTargetException, NoSuchMethodException {
        if (bit == 0) {
            return false;
        }
        Option checksum = (Option) call(snapshot, "checksumOpt");
        if (checksum.isEmpty()) {
            return false;
        }
        Option all = (Option) call(checksum.get(), "setTransactions");
        if (all.isEmpty()) {
            return false;
        }
        Map found = scala.collection.immutable.Map$.MODULE$.empty();
        long last = -1;
        Iterator each = ((Seq) all.get()).iterator();
        while (each.hasNext()) {
            Object one = each.next();
            Object name = call(one, "appId");
            Object version = call(one, "version");
            if (name.equals(writer)) {
                last = ((Long) version).longValue();
            }
            found = (Map) found.updated(name, version);
        }
        // The lock that Scala takes for a lazy value.
        synchronized (snapshot) {
            int bits = known.getInt(snapshot);
            if (last != batch) {
                known.setInt(snapshot, bits & ~bit);
                return false;
            }
            if ((bits & bit) == 0) {
                transactions.set(snapshot, found);
                known.setInt(snapshot, bits | bit);
            }
        }
        return true;
    }

    private static Object call(Object of, String name)
            throws IllegalAccessException, InvocationTargetException, NoSuchMethodException {
        return of.getClass().getMethod(name, NO_CLASSES).invoke(of, NO_OBJECTS);
    }
}
