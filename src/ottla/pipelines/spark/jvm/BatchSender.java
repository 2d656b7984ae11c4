package ottla.pipelines;

import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.Socket;
import java.util.Iterator;

import org.apache.spark.api.java.function.VoidFunction;

/**
 * Hands the byte arrays of a partition to the driver, each over a connection of its own: the token,
 * the bytes, and the end of the stream. The driver answers with one byte once it has read them.
 */
public final class BatchSender implements VoidFunction {
    private static final long serialVersionUID = 1L;
    private final String host;
    private final int port;
    private final byte[] token;
    private final int taken;

    public BatchSender(String host, Integer port, byte[] token, Integer taken) {
        this.host = host;
        this.port = port.intValue();
        this.token = token;
        this.taken = taken.intValue();
    }

    public void call(Object partition) throws IOException {
        Iterator batches = (Iterator) partition;
        while (batches.hasNext()) {
            this.send((byte[]) batches.next());
        }
    }

    private void send(byte[] batch) throws IOException {
        Socket connection = new Socket(this.host, this.port);
        try {
            OutputStream stream = connection.getOutputStream();
            stream.write(this.token);
            stream.write(batch);
            connection.shutdownOutput();
            if (connection.getInputStream().read() != this.taken) {
                throw new EOFException("nobody takes the texts any more");
            }
        } finally {
            connection.close();
        }
    }
}
